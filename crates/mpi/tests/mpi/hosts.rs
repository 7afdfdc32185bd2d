//! Two hosts.

use std::collections::HashSet;
use std::fs::{remove_dir_all, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{assert_equal, make_tree, scratch};
use crate::{PROGRAM, messages, mpirun};

/// The addresses of both.
const NETWORK: &str = "10.98.76.0/24";

/// Two network namespaces, joined by a pair of interfaces. Removed when it is dropped.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// `None` after a reported skip.
    fn new() -> Option<Hosts> {
        let unique = std::process::id();
        let names = [format!("haulage{unique}a"), format!("haulage{unique}b")];
        let hosts = Hosts { names };
        let [first, second] = &hosts.names;
        let steps = [
            format!("netns add {first}"),
            format!("netns add {second}"),
            format!(
                "link add veth{unique}a netns {first} type veth peer name veth{unique}b netns {second}"
            ),
            format!("-n {first} addr add 10.98.76.1/24 dev veth{unique}a"),
            format!("-n {second} addr add 10.98.76.2/24 dev veth{unique}b"),
            format!("-n {first} link set veth{unique}a up"),
            format!("-n {second} link set veth{unique}b up"),
            format!("-n {first} link set lo up"),
            format!("-n {second} link set lo up"),
        ];
        for step in steps {
            let done = Command::new("ip").args(step.split(' ')).output();
            if !done.as_ref().is_ok_and(|done| done.status.success()) {
                testfs::skip(&testfs::test_name(), &format!("ip {step}: {done:?}"));
                return None;
            }
        }
        Some(hosts)
    }

    /// A script that starts processes on the second host, in place of ssh.
    fn agent(&self, dir: &Path) -> PathBuf {
        let script = dir.join("agent");
        let text = format!(
            "#!/bin/sh\nshift\nexec ip netns exec {} unshare --uts sh -c 'hostname second; exec \"$@\"' sh sh -c \"$*\"\n",
            self.names[1]
        );
        write(&script, text).expect("written");
        set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("mode set");
        script
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn two_hosts_copy_one_tree() {
    if !testfs::is_root() {
        return testfs::skip(&testfs::test_name(), "only root can make network namespaces");
    }
    let Some(hosts) = Hosts::new() else { return };
    let dir = scratch();
    make_tree(&dir.path().join("src"), 7);
    std::fs::create_dir_all(dir.path().join("src/more")).expect("created");
    for number in 0..3000 {
        write(dir.path().join(format!("src/more/{number}")), "x").expect("written");
    }
    let agent = hosts.agent(dir.path());
    for ranks in [2, 6] {
        let slots = ranks / 2;
        let first = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let file = format!("{first} slots={slots}\nsecond slots={slots}\n");
        let hostfile = dir.path().join("hosts");
        write(&hostfile, file).expect("written");
        let options = format!(
            "--mca plm_rsh_agent {} --mca plm rsh --mca btl tcp,self --mca btl_tcp_if_include {NETWORK} \
             --mca oob_tcp_if_include {NETWORK} --hostfile {}",
            agent.display(),
            hostfile.display()
        );
        let options: Vec<&str> = options.split(' ').collect();
        let copy = |src: &str| {
            let mut inner = mpirun(dir.path(), ranks, &options);
            inner.arg(PROGRAM).args(["cp", "-a", "--jobs=1", src, "dst"]);
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &hosts.names[0]]);
            command.arg(inner.get_program()).args(inner.get_args()).current_dir(dir.path());
            command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.output().expect("ip ran")
        };
        let output = copy("src");
        assert!(output.status.success(), "{ranks} ranks: {output:?}");
        assert_equal(&dir.path().join("src"), &dir.path().join("dst"), &format!("{ranks} ranks"));
        remove_dir_all(dir.path().join("dst")).expect("removed");
        // Now each file fails, and each message names a host.
        for number in 0..3000 {
            let in_the_way = dir.path().join(format!("dst/more/{number}"));
            std::fs::create_dir_all(in_the_way).expect("created");
        }
        let output = copy("src/more");
        assert_eq!(output.status.code(), Some(1), "{ranks} ranks: {output:?}");
        let messages = messages(&output);
        // What is told twice, or is another message.
        let mut seen = HashSet::new();
        let texts = messages.iter().map(|line| line.split_once("] ").unwrap_or_default().1);
        let odd: Vec<&str> = texts
            .filter(|text| !text.contains("cannot overwrite directory") || !seen.insert(*text))
            .collect();
        assert_eq!(
            (messages.len(), odd),
            (3000, vec![]),
            "{ranks} ranks: each failure is told once"
        );
        for host in [&first, "second"] {
            let named = format!("[{host} ");
            let told = messages.iter().filter(|line| line.starts_with(&named)).count();
            assert!(told > 200, "{ranks} ranks: {host} copied {told} files");
        }
        remove_dir_all(dir.path().join("dst")).expect("removed");
    }
}
