// Package guest has tests that boot a small Linux in QEMU, to run a gateway on PCI devices that the machine doesn't have: Debian's generic
// kernel, an initramfs made here, a virtual IOMMU, and emulated NICs whose wires end in the test. It needs QEMU, but neither KVM nor root.
// It installs nothing and leaves nothing behind: the guest's disk is memory.
package guest
