#!/bin/sh
# Installs packages in a fresh root, tries the commands and the library there as an ordinary user, removes the packages
# and looks for what is left. `cargo xtask dist --check` calls it as root, with the environment of make.sh:
#   check.sh deb|rpm|tar
set -eu
umask 022
export LC_ALL=C.UTF-8
format=$1
wrong=0

# A small Debian as debootstrap makes it, kept for later checks: the release of this one, so that its C library is not
# older than the program needs, or else the present stable one.
suite=$(. /etc/os-release; [ "$ID" = debian ] && echo "${VERSION_CODENAME:-stable}" || echo stable)
base=$out/debian-$suite
if [ ! -d "$base" ]; then
    echo "xtask: debootstrap $suite" >&2
    rm -rf "$base.partial"
    debootstrap --variant=minbase "$suite" "$base.partial" > "$out/debootstrap.log" || {
        tail -n 3 "$out/debootstrap.log" >&2
        exit 1
    }
    mv "$base.partial" "$base"
fi
work=$(mktemp -d "$out/check-XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root

# as root|user SCRIPT: in namespaces of its own, with which its mounts and processes end.
as() {
    user=
    [ "$1" = root ] || user='--userspec=1000:1000 --groups='
    # shellcheck disable=SC2086
    unshare --mount --propagation private --pid --fork --kill-child --mount-proc="$root/proc" -- \
        chroot $user "$root" /usr/bin/env -i LC_ALL=C.UTF-8 TERM=dumb HOME=/home/user \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -c "cd /home/user && {
$2
}"
}

# What rpm says is told only if it fails: it warns that this is a Debian.
rpm_in_root() {
    rpm --root "$root" --dbpath /var/lib/rpm "$@" 2> "$work/said" || {
        cat "$work/said" >&2
        return 1
    }
}

# Every file with its type, mode, owner and content, apart from the books of the package manager.
listing() {
    (cd "$root" && find . \( -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./var/log -o -path ./var/cache \) \
        -prune -o \( -type f -exec sha256sum {} + , -printf '%p %y %m %U:%G %l\n' \)) | LC_ALL=C sort
}

problem() {
    echo "xtask: $subject: $1" >&2
    wrong=1 found=1
}

# try SCRIPT TEXT: the script of the user must not fail, and must print the text.
try() {
    scripts=$((scripts + 1))
    # A Debian looks for libraries where its packages have them, and not where those of rpm do.
    said=$(as user "PATH=$prefix/bin:\$PATH; export LD_LIBRARY_PATH=$prefix/lib64
$1" 2>&1) || problem "$1: it fails: $said"
    case $said in *"$2"*) ;; *) problem "$1: without '$2': $said" ;; esac
}

# begin SUBJECT PACKAGE...: a fresh root with the packages.
begin() {
    subject=$1 found=0 scripts=0 prefix=/usr
    shift
    rm -rf "$root"
    cp -a "$base" "$root"
    mkdir -p "$root/home/user"
    chown 1000:1000 "$root/home/user"
    # The directories that every system with rpm has.
    if [ "$format" = rpm ]; then
        for dir in include lib64/pkgconfig share/doc share/licenses share/man/man1 share/man/man3; do
            mkdir -p "$root/usr/$dir"
        done
    fi
    listing > "$work/before"
    case $format in
        deb)
            mkdir "$root/packages"
            cp "$@" "$root/packages"
            as root 'dpkg --install /packages/*.deb' > /dev/null
            rm -r "$root/packages"
            ;;
        # The packages that they need are those of Debian there, of which rpm knows nothing.
        rpm) rpm_in_root --install --nodeps "$@" ;;
        tar)
            tar --extract --file "$1" --directory "$root/opt"
            prefix=/opt/$(basename "$1" .tar.gz)
            ;;
    esac
    listing > "$work/installed"
    installed=$(($(grep -c '^\./' "$work/installed") - $(grep -c '^\./' "$work/before")))
}

# end MADE NAME...: removes the packages of these names; MADE is what the user may have made.
end() {
    made=$(ls "$root/home/user" | tr '\n' ' ')
    [ "$made" = "$1 " ] || problem "the commands left '$made' in the home directory, not '$1'"
    rm -rf "$root"/home/user/*
    shift
    case $format in
        deb) as root "dpkg --purge $*" > /dev/null ;;
        rpm) rpm_in_root --erase "$@" ;;
        tar) rm -r "${root:?}$prefix" ;;
    esac
    listing > "$work/after"
    diff "$work/before" "$work/after" > "$work/left" || problem "before (<) and after (>): $(cat "$work/left")"
    verdict='nothing is left'
    [ $found = 0 ] || verdict='PROBLEMS, see above'
    echo "$subject: $installed files and directories installed in a fresh root, $scripts scripts run as an ordinary" \
        "user, removed; $verdict"
}

begin "$format" "$out/$format"/haulage[-_]*
try 'haulage --version' 'profile dist'
try 'haulage help' 'Usage: haulage'
try 'mkdir -p tree/sub; head -c 300000 /dev/urandom > tree/sub/file; ln -s sub/file tree/link
haulage cp -a tree copy && diff -r tree copy && stat -c %F copy/link' 'symbolic link'
try 'haulage cp missing copy 2>&1 || true' "cp: cannot stat 'missing': No such file or directory"
as_cp="PATH=$prefix/lib/haulage/bin:\$PATH"
try "$as_cp; cp --version" 'cp (haulage)'
try "$as_cp; cp --help" 'Usage: cp '
try "$as_cp; cp missing copy 2>&1 || true" "cp: cannot stat 'missing': No such file or directory"
try "$as_cp; cp -r tree second && diff -r tree second && echo same" same
try 'cp --version' 'GNU coreutils'
try 'haulage engines' copy_file_range
try 'haulage doctor' 'in the page cache'
try 'haulage race tree/sub/file copy --time 1' 'x best (95 %)'
try 'haulage bench --list' engines
try 'haulage man cp' '.TH HAULAGE\-CP 1'
try "bash -c 'source $prefix/share/bash-completion/completions/haulage; complete -p haulage'" haulage
[ "$format" = deb ] && try 'head -n 1 /usr/share/doc/haulage/copyright' packaging-manuals/copyright-format/1.0/
end 'copy second tree' haulage

# A tarball has no library.
[ "$format" = tar ] && exit $wrong
if ! cc --version > /dev/null 2>&1 || ! pkg-config --version > /dev/null 2>&1; then
    echo "$format: SKIPPED: the library, which takes cc and pkg-config to try"
    exit $wrong
fi
begin "$format, library" "$out/$format"/libhaulage*
# The program of the README, by the compiler of this system: the root has none. Headers, libraries and options are
# those of the root.
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md > "$work/copy.c"
found_by=$(find "$root/usr" -name haulage.pc)
flags() {
    # Those of the root are not where the compiler looks.
    PKG_CONFIG_LIBDIR=$(dirname "$found_by") PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
        PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --cflags --libs "$@" haulage
}
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror -o "$root/home/user/shared" "$work/copy.c" $(flags)
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror -o "$root/home/user/static" "$work/copy.c" \
    $(flags --static | sed 's/-lhaulage/-l:libhaulage.a/')
try 'mkdir -p tree/sub; head -c 3000000 /dev/urandom > tree/sub/file
./shared tree first && diff -r tree first && echo same' same
try './static tree second && diff -r tree second && echo same' same
try './shared missing third || echo failed' failed
try 'ldd ./shared' libhaulage.so.
try 'ldd ./static | grep libhaulage || echo linked statically' 'linked statically'
try 'zcat /usr/share/man/man3/haulage.3.gz' '.TH HAULAGE 3'
case $format in
    deb) names="libhaulage${soname#libhaulage.so.} libhaulage-dev" ;;
    rpm) names='libhaulage libhaulage-devel' ;;
esac
# shellcheck disable=SC2086
end 'first second shared static tree' $names
exit $wrong
