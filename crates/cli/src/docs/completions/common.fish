# Completion of haulage, for fish.

function __haulage_is
    set -l words (commandline -opc)
    test (count $words) -ge 2 -a "$words[2]" = "$argv[1]"
end

# Run directories below the word so far, and in runs/, where they are made; else files.
function __haulage_runs
    set -l word (string replace -r '^--[^=]*=' '' -- (commandline -ct))
    set -l found
    for samples in $word*/samples.csv runs/*/samples.csv
        set -l run (string replace -r '/samples.csv$' '' -- $samples)
        if string match -q -- "$word*" $run; and not contains -- $run $found
            set -a found $run
        end
    end
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path $word
    end
end

