//go:build !nodpdk

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
	"github.com/cnpgate/cnpgate/internal/sandbox"
)

// testedKernel is the latest Linux with which the lists of system calls were tried.
const testedKernel = 6<<8 | 18

// confine limits what the process can do from now on to what the devices and the configuration need. If something can't be limited, it logs that and the gateway
// continues.
func (d *devices) confine(c *config.Config, reportPath string) {
	mode, why := d.sandboxMode(c)
	if mode == "off" {
		d.log.Info().Str("sandbox", mode).Msg("The process is not confined: " + why + ".")
		return
	}
	if mode == "enforce" {
		if err := sandbox.LimitFiles(usedPaths(c, reportPath)); err != nil {
			d.log.Warn().Err(err).Msg("The files that the process may open are not limited.")
		}
	}
	d.limit(c, reportPath)
	filter, err := sandbox.Supervised(sandbox.Runtime, sandbox.Files, sandbox.Serve, sandbox.Connect, sandbox.Devices)
	if err == nil {
		err = dpdk.Supervise(filter, mode == "audit", func(call int) {
			d.log.Warn().Str("sandbox", mode).Str("call", sandbox.Name(call)).Msg(violations[mode])
		})
	}
	if err != nil {
		d.log.Warn().Err(err).Msg("The system calls of the process are not limited.")
		return
	}
	d.log.Info().Str("sandbox", mode).Msg("The process is confined: " + why + ".")
}

// violations are what the log says of a call that isn't among those listed.
var violations = map[string]string{
	"enforce": "The sandbox refused a system call. If the gateway needs it, set management.sandbox to audit, and report this.",
	"audit":   "The process made a system call that the sandbox would refuse.",
}

// sandboxMode is how the process is confined, and why so.
func (d *devices) sandboxMode(c *config.Config) (mode, why string) {
	if mode = c.Management.Sandbox; mode != "enforce" {
		return mode, "management.sandbox is " + mode
	}
	if c.Bypass != nil && len(c.Bypass.Command) > 0 {
		return "off", "bypass.command needs calls and files that aren't known"
	}
	for i, p := range c.Ports {
		if driver := d.Profile(i).Driver; !dpdk.Observed(driver) {
			return "audit", fmt.Sprintf("the calls of port %s's driver %s were not observed", p.Name, driver)
		}
	}
	var name unix.Utsname
	var major, minor int
	_ = unix.Uname(&name)
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); n != 2 || major<<8|minor > testedKernel {
		return "audit", fmt.Sprintf("it was tried with Linux up to %d.%d, and this is %s", testedKernel>>8, testedKernel&0xFF, unix.ByteSliceToString(name.Release[:]))
	}
	return mode, "it opens its own files only, and makes the system calls that were observed"
}

// usedPaths are what a gateway opens once it forwards. The directories of files are among them, as a reload reads the file that then has the name.
func usedPaths(c *config.Config, reportPath string) (p sandbox.Paths) {
	for _, file := range c.Files() {
		p.Read = append(p.Read, filepath.Dir(file))
		if target, err := filepath.EvalSymlinks(file); err == nil {
			p.Read = append(p.Read, filepath.Dir(target))
		}
	}
	p.Read = append(p.Read, "/proc", "/sys", "/usr", "/lib", "/lib64", "/etc/ssl", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/localtime",
		"/etc/services", "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/ld.so.cache", "/dev/urandom", "/etc/mime.types", "/etc/gai.conf", "/etc/host.conf")
	p.Write = append(dpdk.StateDirectories(), "/dev/null", "/dev/net/tun", "/dev/vhost-net", "/dev/hugepages", "/dev/shm")
	for _, file := range []string{reportPath, c.Management.Socket} {
		if file != "" {
			p.Write = append(p.Write, writtenBy(file))
		}
	}
	if c.Bypass != nil {
		p.Write = append(p.Write, c.Bypass.File)
	}
	if c.Fleet != nil {
		p.Write = append(p.Write, c.Fleet.Episodes.Store)
	}
	for i := range c.Ports {
		for _, argument := range strings.Split(c.Ports[i].Device, ",") {
			if _, path, _ := strings.Cut(argument, "="); filepath.IsAbs(path) { // a socket that is made or opened again
				p.Write = append(p.Write, filepath.Dir(path))
			}
		}
	}
	return p
}
