# Makes and mounts the file systems of the matrix, in a guest. $FS is its name, $D the disk, $M the mount point, $N a
# second one, $S the directory that a server exports. The first command that fails ends it, and what it said is the
# reason.

# Rows faults-* have the disk behind one of the device mapper, which takes a target: whole, or but for sectors of a file.
case $FS in faults-*) D=/dev/dm-0; sectors=$(blockdev --getsz /dev/vda) ;; esac

# Fails if the kernel does not have the file system.
need() {
    type=${FS#faults-}; type=${type%%-*}; module=; feature=
    case $FS in
    ntfs-3g | *-fuse) type=fuse ;;
    nfs-*) module=nfsd ;;
    smb-samba) type=cifs ;;
    smb-ksmbd) type=cifs module=ksmbd ;;
    ext3-128) type=ext4 ;;
    fscrypt*) type=ext4 feature=encryption ;;
    ext4-casefold | ext4-verity) type=ext4 feature=${FS#ext4-} ;;
    overlayfs) type=overlay ;;
    cgroup) type=cgroup2 ;;
    esac
    modprobe -qa fs-$type $module || true
    if ! grep -qw $type /proc/filesystems; then
        echo "Linux has no $type here" >&2; false
    elif [ -n "$module" ] && [ ! -e /sys/module/$module ]; then
        echo "Linux has no $module here" >&2; false
    elif [ -n "$feature" ] && [ ! -e /sys/fs/ext4/features/$feature ]; then
        echo "ext4 has no $feature here" >&2; false
    fi
}

table() {
    dmsetup suspend --nolockfs t
    dmsetup load t
    dmsetup resume t
}

mapped() {
    echo "0 $sectors $1" | table
}

# Four MiB from the beginning of the file $1.
bad_sectors() {
    bad=$(($(filefrag -v -b512 $1 | awk '$1 == "0:" { print $4 + 0 }') + 8192))
    printf '%s\n' "0 $bad linear /dev/vda 0" "$bad 8 error" \
        "$((bad + 8)) $((sectors - bad - 8)) linear /dev/vda $((bad + 8))" | table
    echo 3 >/proc/sys/vm/drop_caches
}

lose_power() {
    mapped 'flakey /dev/vda 0 0 600 1 drop_writes'; unmount
    mapped 'linear /dev/vda 0'; mount_it
}

make_faulty() {
    wipefs -aq $D
    mkfs.${FS#faults-} $D
}

nfs_server() {
    mkfs.ext4 -q -I 256 $D; mount $D $S; chmod 777 $S
    mount -t tmpfs tmpfs /var/lib/nfs
    mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/v4recovery /run/rpcbind
    touch /var/lib/nfs/etab /var/lib/nfs/rmtab
    chown -R statd /var/lib/nfs/sm*
    modprobe nfsd
    mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
    rpcbind; rpc.statd --no-notify
    # Ten seconds, the least, instead of 90 in which clients may claim old locks and the first open on NFS 4 waits.
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    exportfs -o rw,fsid=0,insecure,no_subtree_check,$1 127.0.0.1:$S
    rpc.nfsd 4; rpc.mountd
}

smb_disk() {
    mkfs.ext4 -q -I 256 $D; mount $D $S
    modprobe -a cmac ccm gcm
}

# Runs a program of newer packages than the host's, with their libraries.
ksmbd() {
    program=$(command -v ksmbd.tools); libraries=${program%/libexec/*}/lib/x86_64-linux-gnu; name=ksmbd.$1; shift
    $libraries/ld-linux-x86-64.so.2 --argv0 $name --library-path $libraries $program "$@"
}

# The server may not listen yet. Without a cache of attributes an open file has one name in Linux 5.10.
mount_smb() {
    [ $FS = smb-samba ] && times=actimeo=0 || times=actimeo=1
    for try in $(seq 100); do
        mount -t cifs -o $times,vers=3.1.1,user=root,pass=x //127.0.0.1/s $M 2>/m/why && return
        sleep 0.2
    done
    cat /m/why >&2; false
}

make() {
    case $FS in
    vfat) modprobe nls_cp437 || true; mkfs.vfat -F 32 $D ;;
    exfat) mkfs.exfat $D ;;
    ntfs*) modprobe fuse || true; mkfs.ntfs -F -f $D ;;
    nfs-*-squash) nfs_server root_squash ;;
    nfs-*) nfs_server no_root_squash ;;
    smb-samba)
        smb_disk; mkdir /m/samba
        { printf '[global]\nea support=yes\nstore dos attributes=no\n'
            for dir in private state cache lock pid ncalrpc; do
                printf '%s %s=/m/samba\n' $dir $([ $dir = ncalrpc ] && echo dir || echo directory)
            done
            printf 'log file=/m/samba/log\n[s]\npath=%s\nwritable=yes\n' $S; } >/m/smb.conf
        printf 'x\nx\n' | smbpasswd -c /m/smb.conf -s -a root
        smbd -s /m/smb.conf -D ;;
    smb-ksmbd)
        smb_disk; modprobe ksmbd; mkdir -p /etc/ksmbd
        printf '[global]\n[s]\npath=%s\nread only=no\nstore dos attributes=no\n' $S >/etc/ksmbd/ksmbd.conf
        touch /etc/ksmbd/ksmbdpwd.db
        ksmbd adduser -a root -p x; ksmbd mountd ;;
    ext4-casefold) mkfs.ext4 -q -b 4096 -O casefold $D ;;
    ext4-verity) mkfs.ext4 -q -b 4096 -O verity $D ;;
    ext[34]-128) mkfs.${FS%-128} -q -I 128 $D ;;
    faults-*)
        modprobe -a dm-mod dm-flakey
        echo "0 $sectors linear /dev/vda 0" | dmsetup create --noudevsync t
        make_faulty ;;
    fscrypt*) mkfs.ext4 -q -b 4096 -O encrypt $D ;;
    f2fs | ext2 | jfs) mkfs.$FS -q $D ;;
    udf) mkfs.udf $D ;;
    ext4) mkfs.ext4 -q -I 256 $D ;;
    xfs | btrfs) mkfs.$FS -q $D ;;
    overlayfs) mkfs.ext4 -q -I 256 $D; mount $D $S; mkdir $S/lower $S/upper $S/work ;;
    *-fuse)
        modprobe fuse || true
        mkfs.ext4 -q -I 256 $D; mount $D $S; mkdir $S/one $S/two $S/work
        [ $FS != gocryptfs-fuse ] || gocryptfs -q -init -scryptn 10 -extpass 'echo x' $S/one ;;
    iso9660) genisoimage -quiet -R -m lost+found /m/local >$D ;;
    squashfs) mksquashfs /m/local $D -quiet -no-progress -noappend -e lost+found ;;
    esac
}

mount_it() {
    case $FS in
    nfs-3) mount -t nfs -o vers=3 127.0.0.1:$S $M ;;
    nfs-4.2-two) for at in $M $N; do mount -t nfs -o vers=4.2,nosharecache 127.0.0.1:/ $at; done ;;
    nfs-*) vers=${FS#nfs-}; mount -t nfs -o vers=${vers%-squash} 127.0.0.1:/ $M ;;
    smb-*) mount_smb ;;
    # Not by the program mount.ntfs, which is ntfs-3g.
    ntfs) mount -i -t ntfs $D $M ;;
    ntfs-3g) ntfs-3g $D $M ;;
    btrfs) mount -o compress=zstd $D $M ;;
    fscrypt)
        mount $D $M; mkdir -p $M/in
        # The key is in the keyring of the kernel's session, which every process of the guest has.
        e4crypt add_key -S 0x12 $M/in <<<secret || e4crypt add_key -S 0x12 <<<secret
        mount --bind $M/in $M ;;
    fscrypt-locked)
        mount $D $M
        if [ ! -d $M/rich ]; then
            # The key is in a keyring of this shell alone, and the next mount knows no file of before.
            e4crypt new_session
            mkdir $M/rich $M/plain $M/old
            e4crypt add_key -S 0x12 $M/rich $M/plain $M/old <<<secret
            for tree in rich plain old; do cp -a /m/local/$tree/. $M/$tree; done
            umount $M; mount $D $M
        fi ;;
    overlayfs) mount -t overlay -o lowerdir=$S/lower,upperdir=$S/upper,workdir=$S/work overlay $M ;;
    tmpfs) mount -t tmpfs tmpfs $M ;;
    bindfs-fuse) bindfs $S/one $M ;;
    mergerfs-fuse) mergerfs -o minfreespace=0,use_ino $S/one:$S/two $M ;;
    unionfs-fuse) unionfs -o cow $S/one=RW:$S/two=RO $M ;;
    overlayfs-fuse) fuse-overlayfs -o lowerdir=$S/two,upperdir=$S/one,workdir=$S/work $M ;;
    gocryptfs-fuse) gocryptfs -q -extpass 'echo x' -allow_other $S/one $M ;;
    encfs-fuse) encfs --standard --extpass='echo x' $S/one $M ;;
    # Instead of a connection.
    sshfs-fuse)
        printf '#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n' >/m/ssh; chmod +x /m/ssh
        sshfs -o ssh_command=/m/ssh,allow_other,default_permissions here:$S/one $M ;;
    ext4-casefold)
        mount $D $M; mkdir -p $M/in
        [ -n "$(ls $M/in)" ] || chattr +F $M/in
        mount --bind $M/in $M ;;
    # Directories whose files neither wait for something nor change.
    proc) mkdir -p $M/rich; mount --bind /proc/sys/net $M/rich ;;
    sysfs) mkdir -p $M/rich; mount --bind /sys/module/kernel $M/rich ;;
    cgroup)
        mkdir -p $M/rich /m/cgroup; mount -t cgroup2 cgroup2 /m/cgroup
        mkdir -p /m/cgroup/a/b; mount --bind /m/cgroup/a $M/rich ;;
    faults-*) modprobe nls_cp437 || true; mount -t ${FS#faults-} $D $M ;;
    *) mount -t ${FS%%-*} $D $M ;;
    esac
}

# Of each source $T, and of what will be overwritten.
prepare() {
    case $FS in
    btrfs)
        btrfs subvolume create $T/subvolume; cp $T/middle $T/subvolume/file
        # Copies may go over it, and their times are compared.
        touch -r $T/middle $T/subvolume/file $T/subvolume ;;
    # That changes the time of a file.
    ext4-verity) find $T -name 'm*' -type f -links 1 -exec fsverity enable {} ';' -exec touch -r $T {} ';' ;;
    esac
}

unmount() {
    for dir in $M/rich $M $N; do
        # After an error stat(2) fails there, and mountpoint(1) says no. A process takes a tenth of a second here.
        while mapfile -t mounts </proc/self/mounts && [[ "${mounts[*]}" == *" $dir "* ]]; do umount $dir; done
    done
}

# The files of tmpfs are lost with an unmount.
remount() {
    [ $FS = tmpfs ] || { unmount; mount_it; }
}
