package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// tree finds tests in a source tree, whatever their build tags are.
type tree struct {
	root fs.FS
	text map[string]string // files that match a pattern, one behind another, each after a newline
}

// testArguments is what follows the name of a test.
var testArguments = regexp.MustCompile(`^\w+ \*testing\.[TBF]\)`)

var proofForm = regexp.MustCompile(`^([a-z0-9_/]+) ((Test|Fuzz|Benchmark)[A-Z]\w*)(/(.+))?$`)

// has reports whether there is what a proof names: "folder TestName" or "folder TestName/case".
func (t *tree) has(proof string) error {
	m := proofForm.FindStringSubmatch(proof)
	if m == nil || m[2] == "TestMain" {
		return fmt.Errorf(`%q isn't "folder TestName" or "folder TestName/case"`, proof)
	}
	folder, name, one := m[1], m[2], m[5]
	tests, err := t.sources(folder, "*_test.go")
	if err != nil {
		return err
	}
	if _, arguments, found := strings.Cut(tests, "\nfunc "+name+"("); !found || !testArguments.MatchString(arguments) {
		return fmt.Errorf("no %s in %s", name, folder)
	}
	if one != "" && !t.hasCase(folder, tests, one) {
		return fmt.Errorf("no case %q in the tests of %s", one, folder)
	}
	return nil
}

// hasCase looks for a case's name where tables have it: in the tests, among the golden notifications, or as a file of testdata.
func (t *tree) hasCase(folder, tests, name string) bool {
	shared, err := t.sources("internal/testkit/notifications", "*.go")
	if quoted := strconv.Quote(name); strings.Contains(tests, quoted) || err == nil && strings.Contains(shared, quoted) {
		return true
	}
	for _, pattern := range []string{"testdata/golden/" + name, path.Join(folder, "testdata/*", name)} {
		if found, err := fs.Glob(t.root, pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// sources are the files of a folder that match.
func (t *tree) sources(folder, pattern string) (string, error) {
	glob := path.Join(folder, pattern)
	if s, ok := t.text[glob]; ok {
		return s, nil
	}
	files, err := fs.Glob(t.root, glob)
	if err == nil && len(files) == 0 {
		err = errors.New("no tests in " + folder)
	}
	var b strings.Builder
	for _, f := range files {
		text, readErr := fs.ReadFile(t.root, f)
		err = errors.Join(err, readErr)
		b.WriteByte('\n')
		b.Write(text)
	}
	if err == nil {
		t.text[glob] = b.String()
	}
	return b.String(), err
}
