//go:build live && !nodpdk

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit"
)

// Config describes a guest.
type Config struct {
	Folder    string   // for sockets and the initramfs; the caller removes it
	CPUs      int      // default: 2
	MemoryMiB int      // default: 1024
	NICs      []string // QEMU's names of devices: virtio-net-pci, e1000e, vmxnet3; their wires end in the test
	Bus       int      // the PCI bus that the NICs are on, as functions of one device; 0: each is a device of the root bus
	Taps      []string // tap interfaces of the test's network namespace, each behind a virtio-net-pci after the NICs
	Files     []File   // contents of the initramfs besides a shell and the kernel's modules
	Modules   []string // kernel modules to load, in any order
}

// Guest is a running guest.
type Guest struct {
	NICs []*NIC

	folder  string
	process *exec.Cmd
	ended   chan struct{}
	console *console
	shell   net.Conn
	answers *bufio.Reader
	qmp     *qmp
}

// patience is how long the guest may take for one action. It is emulated, on a machine that may be busy. No measurement depends on it.
const patience = 4 * time.Minute

// Boot starts a guest and waits until its shell answers.
func Boot(c Config) (g *Guest, err error) {
	kernel, err := findKernel()
	if err != nil {
		return nil, err
	}
	g = &Guest{folder: c.Folder, ended: make(chan struct{}), console: &console{}}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w; the guest's console:\n%s", err, g.console)
			g.Close()
		}
	}()
	initramfs := filepath.Join(c.Folder, "initramfs")
	if err := writeInitramfs(initramfs, kernel, c); err != nil {
		return g, err
	}
	if c.CPUs == 0 {
		c.CPUs = 2
	}
	if c.MemoryMiB == 0 {
		c.MemoryMiB = 1024
	}
	// A busy machine delays an emulated guest: its kernel must neither test its timer at boot nor mistrust its clock.
	args := []string{
		"-machine", "q35,accel=tcg", "-cpu", "max", "-smp", fmt.Sprint(c.CPUs), "-m", fmt.Sprint(c.MemoryMiB),
		"-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", kernel.image, "-initrd", initramfs,
		"-append", "console=ttyS0 quiet panic=-1 intel_iommu=on net.ifnames=0 mitigations=off no_timer_check tsc=reliable",
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", "socket,id=shell,server=on,wait=off,path=" + g.path("shell"), "-serial", "chardev:shell",
		"-qmp", "unix:" + g.path("qmp") + ",server=on,wait=off",
	}
	if c.Bus != 0 {
		args = append(args, "-device", fmt.Sprintf("pxb-pcie,id=bridge,bus=pcie.0,addr=0x8,bus_nr=%d", c.Bus-1),
			"-device", "pcie-root-port,id=root,bus=bridge,chassis=1,slot=1")
	}
	for i, model := range c.NICs {
		n, err := newNIC(g, i, model, c.Bus)
		if err != nil {
			return g, err
		}
		g.NICs = append(g.NICs, n)
		args = append(args, n.arguments()...)
	}
	for i, tap := range c.Taps {
		args = append(args, "-netdev", fmt.Sprintf("tap,id=tap%d,ifname=%s,script=no,downscript=no", i, tap),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=tap%d,mac=%s", i, macOf(tap)))
	}
	g.process = exec.Command("qemu-system-x86_64", args...)
	g.process.Stdout, g.process.Stderr = g.console, g.console
	if err := g.process.Start(); err != nil {
		return g, fmt.Errorf("starting QEMU: %w (run scripts/setup --test)", err)
	}
	go func() {
		defer close(g.ended)
		_ = g.process.Wait() // the console shows how it ended
	}()
	if g.shell, err = g.dial("shell"); err != nil {
		return g, err
	}
	g.answers = bufio.NewReader(g.shell)
	if g.qmp, err = openQMP(g); err != nil {
		return g, err
	}
	if _, err := g.answer(); err != nil {
		return g, fmt.Errorf("the guest did not boot: %w", err)
	}
	return g, nil
}

// macOf derives a MAC address for the NIC behind a tap interface from the interface's name.
func macOf(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("02:00:%s", net.HardwareAddr(h.Sum(nil)))
}

func (g *Guest) path(name string) string { return filepath.Join(g.folder, name) }

// dial connects to one of QEMU's sockets once it exists.
func (g *Guest) dial(name string) (net.Conn, error) {
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", g.path(name))
		if err == nil {
			return c, nil
		}
		last = err
		select {
		case <-g.ended:
			return nil, errors.New("QEMU has ended")
		default:
		}
	}
	return nil, last
}

// done marks the end of the answer to a command, with its exit status.
const done = "@@done "

// damaged is the exit status of a command that lost bytes on its way to the guest, and was not executed.
const damaged = "again"

var errDamaged = errors.New("the command lost bytes on the way to the guest")

// Run runs a command in the guest's shell (busybox), and returns its output. An exit status other than 0 is an error.
func (g *Guest) Run(command string) (string, error) {
	if strings.Contains(command, "\n") {
		return "", errors.New("a command is one line")
	}
	command = strings.TrimSpace(command)
	var out string
	err := errDamaged
	for try := 0; errors.Is(err, errDamaged) && try < 3; try++ {
		// The length lets the guest refuse an incomplete command: on a busy machine the serial port loses bytes.
		if _, err := fmt.Fprintf(g.shell, "%d %s\n", len(command), command); err != nil {
			return "", err
		}
		out, err = g.answer()
	}
	if err != nil {
		err = fmt.Errorf("in the guest: %s: %w\n%s", command, err, out)
	}
	return out, err
}

func (g *Guest) answer() (string, error) {
	if err := g.shell.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		line, err := g.answers.ReadString('\n')
		if err != nil {
			return out.String(), err
		}
		line = strings.TrimSuffix(line, "\n")
		before, status, ended := strings.Cut(line, done)
		if !ended {
			out.WriteString(line + "\n")
			continue
		}
		out.WriteString(before)
		if status == damaged {
			return out.String(), errDamaged
		}
		if status != "0" {
			return out.String(), fmt.Errorf("exit status %s", status)
		}
		return out.String(), nil
	}
}

// Until repeats a command until it succeeds.
func (g *Guest) Until(command string) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out, err := g.Run("if " + command + "; then echo yes; fi")
		if err != nil || strings.HasSuffix(out, "yes\n") {
			return err
		}
	}
	return fmt.Errorf("in the guest, never: %s", command)
}

// Console returns the output of the guest's kernel.
func (g *Guest) Console() string { return g.console.String() }

// Close ends the guest.
func (g *Guest) Close() {
	if g.process != nil && g.process.Process != nil {
		_ = g.process.Process.Kill()
		<-g.ended
	}
	if g.shell != nil {
		_ = g.shell.Close()
	}
	if g.qmp != nil {
		_ = g.qmp.connection.Close()
	}
	for _, n := range g.NICs {
		_ = n.wire.Close()
	}
}

// console stores the output of QEMU and of the guest's kernel.
type console struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (c *console) Write(b []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.text.Write(b)
}

func (c *console) String() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.text.String()
}

// kernel is Debian's, as scripts/setup --test unpacks it.
type kernel struct {
	image   string
	modules string // the folder with modules.dep
}

func findKernel() (kernel, error) {
	dir := filepath.Join(testkit.Cache(), "kernel")
	images, _ := filepath.Glob(filepath.Join(dir, "boot/vmlinuz-*"))
	if len(images) != 1 {
		return kernel{}, fmt.Errorf("%d kernels in %s, expected one: run scripts/setup --test", len(images), dir)
	}
	version := strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	return kernel{images[0], filepath.Join(dir, "lib/modules", version)}, nil
}
