package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pages finds the Markdown files of a tree, but for test data and hidden folders.
func pages(t *testing.T, root fs.FS) (all []string) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	linkSet = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// anchors are those that the headings of a page have.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(page, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(linkSet.ReplaceAllString(m[1], "$1")) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				b.WriteRune(r)
			}
		}
		all[b.String()] = true
	}
	return all
}

// broken are the links of a tree's pages that lead to no file or heading, or out of the tree. Links to other sites are not followed.
func broken(t *testing.T, root fs.FS) (all []string, links int) {
	t.Helper()
	for _, name := range pages(t, root) {
		page, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(page), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			if file = path.Join(path.Dir(name), file); strings.HasPrefix(m[1], "#") {
				file = name
			}
			if _, err := fs.Stat(root, file); err != nil {
				all = append(all, name+": no "+m[1])
				continue
			}
			if target, err := fs.ReadFile(root, file); anchor != "" && (err != nil || !anchors(string(target))[anchor]) {
				all = append(all, name+": no heading for "+m[1])
			}
		}
	}
	return all, links
}

// TestLinks: each link of the source tree's pages leads to a file or a heading.
func TestLinks(t *testing.T) {
	all, links := broken(t, os.DirFS(".."))
	for _, b := range all {
		t.Error(b)
	}
	if links < 200 {
		t.Errorf("%d links found, expected more", links)
	}
}

// TestPackagedLinks: so does each link of the pages that scripts/release packs, among what it packs.
func TestPackagedLinks(t *testing.T) {
	m := regexp.MustCompile(`(?m)^pages='([^']+)'$`).FindStringSubmatch(readPage(t, "../scripts/release"))
	if m == nil {
		t.Fatal("scripts/release has no line pages='...'")
	}
	dir := t.TempDir()
	for _, name := range strings.Fields(m[1]) {
		info, err := os.Stat(path.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			err = os.CopyFS(path.Join(dir, name), os.DirFS(path.Join("..", name)))
		} else {
			err = os.WriteFile(path.Join(dir, name), []byte(readPage(t, path.Join("..", name))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all, _ := broken(t, os.DirFS(dir))
	for _, b := range all {
		t.Error(b)
	}
}

// TestBrokenLinks: a missing file, a missing heading and a way out of the tree are found, and links in code are not.
func TestBrokenLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.md": "# One `two`, three\n[x](b.md) [x](b.md#four-4) [x](#one-two-three) [x](c.md) [x](b.md#five) [x](#six) [x](../d.md) [x](https://example.org/e)\n`[x](f.md)`\n```\n[x](g.md)\n```\n",
		"b.md": "## Four (4)\n```\n# Five\n```\n",
	} {
		if err := os.WriteFile(path.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, links := broken(t, os.DirFS(dir))
	want := "a.md: no c.md; a.md: no heading for b.md#five; a.md: no heading for #six; a.md: no ../d.md"
	if strings.Join(got, "; ") != want || links != 7 {
		t.Errorf("%d links, broken: %q, expected 7, %q", links, got, want)
	}
}

var namedFile = regexp.MustCompile("`([a-z][A-Za-z0-9_-]*(?:/[A-Za-z0-9_.-]+)*(?:/|/[A-Za-z0-9_.-]+|\\.go))`")

// TestNamedFiles: each file and folder that CONTRIBUTING.md and architecture.md name exists: a path from the root or, in architecture.md, from
// dataplane; the name alone of a Go file anywhere.
func TestNamedFiles(t *testing.T) {
	known := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		if known[name] = true; path.Ext(name) == ".go" {
			known[path.Base(name)] = true
		}
		if d != nil && d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for page, base := range map[string]string{"../CONTRIBUTING.md": "", "architecture.md": "dataplane"} {
		for _, m := range namedFile.FindAllStringSubmatch(readPage(t, page), -1) {
			if n++; !known[path.Clean(m[1])] && !known[path.Join(base, m[1])] {
				t.Errorf("%s names %s, and there is no such file or folder", page, m[1])
			}
		}
	}
	if n < 40 {
		t.Errorf("%d files and folders found on the pages, expected more", n)
	}
}

// maxWords is what README.md, CONTRIBUTING.md and the pages of this folder may have together, counted as wc -w does.
const maxWords = 45_000

// TestWords: the documents stay short enough to be read. Whoever adds a page shortens another.
func TestWords(t *testing.T) {
	sum, words := 0, map[string]int{}
	all := append(pages(t, os.DirFS(".")), "../README.md", "../CONTRIBUTING.md")
	for _, name := range all {
		words[name] = len(strings.Fields(readPage(t, name)))
		sum += words[name]
	}
	slices.SortFunc(all, func(a, b string) int { return words[b] - words[a] })
	if sum > maxWords {
		t.Errorf("README.md, CONTRIBUTING.md and docs have %d words, at most %d are allowed; shorten a page, such as the longest ones, %v", sum, maxWords, all[:3])
	}
	t.Logf("%d words", sum)
}
