//go:build live && !nodpdk

package guest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file of the initramfs.
type File struct {
	Path string // in the guest, absolute
	From string // on this machine; the file's contents, unless Text is given
	Text string
	Mode os.FileMode
}

// Programs are files with the shared libraries they need, at the same paths as on this machine. A name may have the form PROGRAM:PATH, with
// the path in the guest.
func Programs(names ...string) ([]File, error) {
	var files []File
	for _, name := range names {
		from, to, _ := strings.Cut(name, ":")
		if to == "" {
			to = from
		}
		files = append(files, File{Path: to, From: from, Mode: 0o755})
		out, err := exec.Command("ldd", from).Output()
		if err != nil {
			return nil, fmt.Errorf("ldd %s: %w", from, err)
		}
		for line := range strings.Lines(string(out)) {
			for _, word := range strings.Fields(line) {
				if strings.HasPrefix(word, "/") {
					files = append(files, File{Path: word, From: word, Mode: 0o755})
				}
			}
		}
	}
	return files, nil
}

// initScript mounts the usual file systems, loads the modules, and serves the second serial line: each line is a command. Its answer ends
// with a line of done and the exit status.
const initScript = `#!/bin/busybox sh
/bin/busybox mkdir -p /bin /sbin /usr/bin /usr/sbin /proc /sys /dev /run /tmp /var
/bin/busybox --install -s
chmod 755 /
ln -sf /run /var/run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /dev/hugepages
ln -s /proc/self/fd /dev/fd
ip link set lo up
for module in %s; do insmod "$module" || echo "insmod $module failed"; done
stty -F /dev/ttyS1 raw -echo
exec </dev/ttyS1 >/dev/ttyS1 2>&1
echo "%s0"
while read -r length line; do
  if [ "${#line}" = "$length" ]; then eval "$line"; echo "%s$?"; else echo "%s%s"; fi
done
poweroff -f
`

func writeInitramfs(name string, k kernel, c Config) error {
	modules, err := resolve(k, c.Modules)
	if err != nil {
		return err
	}
	var paths []string
	files := slices.Clone(c.Files)
	for _, m := range modules {
		to := "/modules/" + path.Base(m)
		paths = append(paths, to)
		files = append(files, File{Path: to, From: filepath.Join(k.modules, m), Mode: 0o644})
	}
	files = append(files,
		File{Path: "/bin/busybox", From: "/bin/busybox", Mode: 0o755},
		File{Path: "/init", Text: fmt.Sprintf(initScript, strings.Join(paths, " "), done, done, done, damaged), Mode: 0o755})
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := &cpio{w: bufio.NewWriter(f)}
	seen := map[string]bool{}
	for _, file := range files {
		if seen[file.Path] {
			continue
		}
		seen[file.Path] = true
		if err := w.add(file, seen); err != nil {
			return err
		}
	}
	return w.close()
}

// resolve lists the modules and their dependencies, in loading order.
func resolve(k kernel, names []string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(k.modules, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("the kernel's modules: %w: run scripts/setup --test", err)
	}
	needs, paths := map[string][]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		module, others, _ := strings.Cut(strings.TrimSpace(line), ":")
		needs[module] = strings.Fields(others)
		paths[strings.ReplaceAll(strings.TrimSuffix(path.Base(module), ".ko"), "-", "_")] = module
	}
	var order []string
	var add func(module string)
	add = func(module string) {
		for _, other := range needs[module] {
			add(other)
		}
		if !slices.Contains(order, module) {
			order = append(order, module)
		}
	}
	for _, name := range names {
		module, ok := paths[strings.ReplaceAll(name, "-", "_")]
		if !ok {
			return nil, fmt.Errorf("the kernel in %s has no module %s", k.modules, name)
		}
		add(module)
	}
	return order, nil
}

// cpio writes an archive in the kernel's initramfs format (newc; Documentation/driver-api/early-userspace/buffer-format.rst).
type cpio struct {
	w     *bufio.Writer
	inode int
}

func (c *cpio) add(f File, seen map[string]bool) error {
	for _, dir := range parents(f.Path) {
		if !seen[dir] {
			seen[dir] = true
			if err := c.entry(dir, 0o040755, nil); err != nil {
				return err
			}
		}
	}
	if f.From == "" {
		return c.entry(f.Path, 0o100000|int(f.Mode), []byte(f.Text))
	}
	real, err := filepath.EvalSymlinks(f.From)
	if err != nil {
		return err
	}
	if f.Path == f.From && real != f.From { // all names of a library must refer to one file, or it would be loaded twice
		if !seen[real] {
			seen[real] = true
			if err := c.add(File{Path: real, From: real, Mode: f.Mode}, seen); err != nil {
				return err
			}
		}
		return c.entry(f.Path, 0o120777, []byte(real))
	}
	content, err := os.ReadFile(real)
	if err != nil {
		return err
	}
	return c.entry(f.Path, 0o100000|int(f.Mode), content)
}

// parents are the folders of a path, the outermost first.
func parents(name string) (dirs []string) {
	for dir := path.Dir(name); dir != "/" && dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

func (c *cpio) entry(name string, mode int, content []byte) error {
	c.inode++
	name = strings.TrimPrefix(name, "/") + "\x00"
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		c.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
	for _, part := range []string{header + name, string(content)} {
		if _, err := io.WriteString(c.w, part+strings.Repeat("\x00", -len(part)&3)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cpio) close() error {
	if err := c.entry("TRAILER!!!", 0, nil); err != nil {
		return err
	}
	return c.w.Flush()
}
