//! The hypervisor of a virtual machine.

/// The leaf of CPUID in which hypervisors give their signature. The kernel's
/// Documentation/virt/kvm/x86/cpuid.rst describes that of KVM.
#[cfg(target_arch = "x86_64")]
const SIGNATURE_LEAF: u32 = 0x4000_0000;

/// The signature of the hypervisor, such as `KVMKVMKVM`, `Microsoft Hv` or `VMwareVMware`; `None` if
/// there is none, or this architecture has no way to ask. CPUID is an instruction that every x86-64
/// processor has, and may be called at any time.
#[must_use]
pub fn hypervisor() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        // Bit 31 of ECX in leaf 1 is reserved for hypervisors to set.
        if std::arch::x86_64::__cpuid(1).ecx >> 31 == 0 {
            return None;
        }
        let found = std::arch::x86_64::__cpuid(SIGNATURE_LEAF);
        let bytes = [found.ebx, found.ecx, found.edx].map(u32::to_le_bytes).concat();
        let text = String::from_utf8_lossy(&bytes).trim_matches('\0').to_owned();
        Some(text).filter(|text| !text.is_empty())
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    /// The kernel shows the same bit among the flags of the processor.
    #[test]
    fn a_virtual_machine_has_a_hypervisor() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        let is_guest = flags.split(' ').any(|flag| flag == "hypervisor");
        assert_eq!(super::hypervisor().is_some(), is_guest);
    }
}
