#!/bin/sh
# Stages the files of packages and packs them. `cargo xtask dist` calls it in the root of the repository, with what it
# has built and knows of the commit in the environment:
#   make.sh stage deb|rpm|tar    stages the program's files in stage/FORMAT below $out
#   make.sh library deb|rpm      stages those of the library in stage/FORMAT-runtime and stage/FORMAT-devel
#   make.sh pack deb|rpm|tar     writes the packages of what is staged into $out/FORMAT
# The environment:
#   out, version, epoch, date, maintainer, arch     the directory for packages, the workspace, the commit, the machine
#   program, program_licences                       the program, and the licences of what it contains
#   shared, archive, libraries, soname              the library, and what a program linked with the archive needs
#   library_licences                                the licences of what the library contains
#   cargo_deb                                       the program
set -eu
umask 022
export LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="$epoch"
task=$1 format=$2
stage=$out/stage

# put MODE FILE TO
put() { install -D -m "$1" "$2" "$3"; }

# zip FILE TO
zip() { mkdir -p "$(dirname "$2")" && gzip -9n < "$1" > "$2"; }

# link TO PATH
link() { mkdir -p "$(dirname "$2")" && ln -s "$1" "$2"; }

# quietly COMMAND...: what it says is told only if it fails.
quietly() {
    "$@" 2> "$out/said" || {
        cat "$out/said" >&2
        return 1
    }
}

# All files get the time of the commit.
settle() { find "$@" -depth -exec touch --no-dereference --date="@$epoch" {} +; }

# The changes of the packages themselves, in the form of Debian.
debian_changes() {
    printf 'haulage (%s-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n' "$version"
    printf ' -- %s  %s\n' "$maintainer" "$date"
}

# What Debian's policy asks of the package $1 in $2, and what lintian need not report of it: it is not part of Debian.
debian_documents() {
    zip CHANGELOG.md "$2/share/doc/$1/changelog.gz"
    debian_changes | zip /dev/stdin "$2/share/doc/$1/changelog.Debian.gz"
    zip "$3" "$2/share/doc/$1/THIRD-PARTY.gz"
    mkdir -p "$2/share/lintian/overrides"
    echo "$1: initial-upload-closes-no-bugs *" > "$2/share/lintian/overrides/$1"
}

# The licences of haulage and of what is in it, in the directory $1.
licences() {
    for file in LICENSE-APACHE LICENSE-MIT; do put 644 $file "$1/$file"; done
    put 644 "$2" "$1/THIRD-PARTY"
}

stage_program() {
    dir=$stage/$format prefix=$stage/$format/usr zsh=share/zsh/site-functions
    [ "$format" = deb ] && zsh=share/zsh/vendor-completions
    # It is unpacked below a prefix such as /usr/local.
    [ "$format" = tar ] && prefix=$dir
    rm -rf "$dir"
    put 755 "$program" "$prefix/bin/haulage"
    link ../../../bin/haulage "$prefix/lib/haulage/bin/cp"
    mkdir -p "$prefix/share/man/man1"
    quietly "$program" man --all "$prefix/share/man/man1"
    [ "$format" = tar ] || gzip -9n "$prefix"/share/man/man1/*
    for completion in bash:share/bash-completion/completions/haulage zsh:$zsh/_haulage \
        fish:share/fish/vendor_completions.d/haulage.fish; do
        "$program" completions "${completion%%:*}" > "$out/completion"
        put 644 "$out/completion" "$prefix/${completion#*:}"
    done
    rm "$out/completion"
    # The documents at the root are those to which the others link.
    git ls-files -- ':(glob)*.md' docs | while read -r path; do
        put 644 "$path" "$prefix/share/doc/haulage/$path"
    done
    case $format in
        # cargo-deb adds packaging/copyright.
        deb) debian_documents haulage "$prefix" "$program_licences" ;;
        rpm) licences "$prefix/share/licenses/haulage" "$program_licences" ;;
        tar) licences "$prefix/share/doc/haulage" "$program_licences" ;;
    esac
    settle "$dir"
}

# The name of the package with the shared library. Debian asks for that of the soname, so that programs for an earlier
# interface keep theirs.
runtime_name() {
    if [ "$format" = deb ]; then echo "libhaulage${soname#libhaulage.so.}"; else echo libhaulage; fi
}

stage_library() {
    runtime=$stage/$format-runtime devel=$stage/$format-devel name=$(runtime_name)
    # rpm reads what a library provides if it may be executed. Debian forbids that mode.
    lib=lib64 mode=755
    if [ "$format" = deb ]; then
        lib=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH) mode=644
    fi
    rm -rf "$runtime" "$devel"
    put $mode "$shared" "$runtime/usr/$lib/libhaulage.so.$version"
    [ "$soname" = "libhaulage.so.$version" ] || link "libhaulage.so.$version" "$runtime/usr/$lib/$soname"
    if [ "$format" = deb ]; then
        debian_documents "$name" "$runtime/usr" "$library_licences"
        # Without what is in the pages of the program alone.
        awk 'BEGIN { RS = "" } !/^(Files: crates\/report\/|License: bitstream-vera)/ { print before $0; before = "\n" }' \
            packaging/copyright > "$runtime/usr/share/doc/$name/copyright"
        link "$name" "$devel/usr/share/doc/libhaulage-dev"
    else
        licences "$runtime/usr/share/licenses/$name" "$library_licences"
    fi
    link "$soname" "$devel/usr/$lib/libhaulage.so"
    put 644 "$archive" "$devel/usr/$lib/libhaulage.a"
    mkdir -p "$devel/usr/$lib/pkgconfig"
    # As cargo-c writes it.
    cat > "$devel/usr/$lib/pkgconfig/haulage.pc" <<END
prefix=/usr
exec_prefix=\${prefix}
libdir=\${exec_prefix}/$lib
includedir=\${prefix}/include

Name: haulage
Description: Copies files and trees the fastest safe way
Version: $version
Libs: -L\${libdir} -lhaulage
Cflags: -I\${includedir}
Libs.private: $libraries
END
    for path in crates/capi/include/*; do put 644 "$path" "$devel/usr/include/${path##*/}"; done
    for path in crates/capi/man/*; do zip "$path" "$devel/usr/share/man/man3/${path##*/}.gz"; done
    settle "$runtime" "$devel"
}

# The packages of the library, by the tools of dpkg: cargo-deb writes no shlibs file, which packages of programs need
# that are linked with the library.
pack_debian_library() {
    work=$(mktemp -d)
    # What debhelper would write there.
    mkdir "$work/debian"
    name=$(runtime_name)
    sed "s/@RUNTIME@/$name/; s/@MAINTAINER@/$maintainer/" packaging/libhaulage.control > "$work/debian/control"
    debian_changes > "$work/debian/changelog"
    (cd "$work" && quietly dpkg-shlibdeps -Tdebian/substvars "$(find "$stage/deb-runtime" -name "$soname")")
    for package in "$name:$stage/deb-runtime" "libhaulage-dev:$stage/deb-devel"; do
        dir=${package#*:}
        # dpkg adds what it reads there to the package.
        rm -rf "$dir/DEBIAN" && mkdir "$dir/DEBIAN"
        (cd "$dir" && find usr -type f | sort | xargs md5sum > DEBIAN/md5sums)
        (cd "$work" && quietly dpkg-gencontrol "-p${package%%:*}" -Tdebian/substvars -O "-P$dir") > "$dir/DEBIAN/control"
        if [ "${package%%:*}" = "$name" ]; then
            echo "libhaulage ${soname#libhaulage.so.} $name (>= $version)" > "$dir/DEBIAN/shlibs"
            echo 'activate-noawait ldconfig' > "$dir/DEBIAN/triggers"
        fi
        dpkg-deb --root-owner-group -Zxz --build "$dir" "$out/deb" > /dev/null
        rm -r "$dir/DEBIAN"
    done
    rm -r "$work"
}

# The files in $1 and the directories of haulage's own, as %files of a spec file lists them. Those of shells may belong
# to several packages; the shells need not be installed.
rpm_files() {
    standard='^(usr|usr/(bin|include|lib|lib64|lib64/pkgconfig|share|share/(doc|licenses|man|man/man[13])))$'
    (cd "$1" && find usr -type d) | grep -Ev "$standard" | sort | sed 's|.*|%dir %attr(755,root,root) "/&"|'
    (cd "$1" && find usr -type l -printf '%%attr(-,root,root) "/%p"\n' -o -type f -printf '%%attr(%m,root,root) "/%p"\n') \
        | sed 's|.*"/usr/share/doc/|%doc &|; s|.*"/usr/share/licenses/|%license &|' | sort
}

# pack_rpm SPEC STAGE [DEVEL]: by rpmbuild, since cargo-generate-rpm packs neither symbolic links nor directories, so that
# the link would belong to no package and directories would be left after its removal.
pack_rpm() {
    work=$(mktemp -d)
    mkdir "$work/files"
    rpm_files "$2" > "$work/runtime"
    cp -a "$2/." "$work/files"
    if [ $# = 3 ]; then
        rpm_files "$3" > "$work/devel"
        cp -a "$3/." "$work/files"
    fi
    rpmbuild -bb --quiet --define "haulage_version $version" --define "haulage_packaging $PWD/packaging" \
        --define "haulage_stage $work/files" --define "packager $maintainer" --define "_topdir $work" \
        --define "_rpmdir $out/rpm" --define "haulage_files $work/runtime" --define "haulage_devel_files $work/devel" \
        --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' "packaging/$1.spec"
    rm -r "$work"
}

pack() {
    rm -rf "${out:?}/$format" && mkdir -p "$out/$format"
    # The packers must find the files of this checkout, whatever the environment says of others.
    unset CARGO_TARGET_DIR CARGO_BUILD_TARGET
    case $format in
        deb)
            "$cargo_deb" --no-build --no-strip --quiet --profile dist --manifest-path crates/cli/Cargo.toml \
                --output "$out/deb" --maintainer "$maintainer"
            pack_debian_library
            ;;
        rpm)
            pack_rpm haulage "$stage/rpm"
            pack_rpm libhaulage "$stage/rpm-runtime" "$stage/rpm-devel"
            ;;
        tar)
            # The top directory gets the name of the package.
            name=haulage-$version-$arch-linux-musl
            tar --create --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
                --use-compress-program='gzip -9n' "--mtime=@$epoch" --file "$out/tar/$name.tar.gz" \
                --directory "$stage/tar" --transform "flags=r;s,^\\.,$name," .
            ;;
    esac
}

case $task in
    stage) stage_program ;;
    library) stage_library ;;
    pack) pack ;;
esac
