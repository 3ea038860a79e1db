package secret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		mode os.FileMode
		size int
		want string // in the error; "": none
	}{
		{0o600, 40, ""}, {0o400, 40, ""}, {0o640, 40, ""}, {0o440, Most, ""},
		{0o644, 40, "mode 0644"}, {0o660, 40, "mode 0660"}, {0o602, 40, "mode 0602"}, {0o601, 40, "mode 0601"}, {0o777, 0, "mode 0777"},
		{0o600, Most + 1, "expected at most"},
	} {
		path, text := filepath.Join(dir, "f"), strings.Repeat("s", c.size)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if c.want == "" && (err != nil || string(got) != text) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "ssss")) {
			t.Errorf("%v of %d bytes: %d bytes, %v; want %q", c.mode, c.size, len(got), err, c.want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := Read(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}
