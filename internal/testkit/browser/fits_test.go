package browser

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// TestFitsFinds: what doesn't fit is found, and what does, or says that it scrolls or is cut, is not.
func TestFitsFinds(t *testing.T) {
	const page = `<!DOCTYPE html><html lang="en"><title>x</title><body style="font: 16px monospace">
<p id="good">short</p><div style="width: 5em; overflow: auto"><pre>scrolls, however long it is</pre></div>
<div style="width: 5em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap">says that it is cut</div>
<div style="width: 5em; white-space: nowrap">leaves it, wide</div><div style="width: 5em; overflow: hidden; white-space: nowrap">is cut, silent</div>
<svg width="100" height="60"><text x="80" y="20">outside</text><text x="2" y="40">one</text><text x="8" y="40">two</text><text x="60" y="52">ok</text></svg>
<svg width="100" height="20" viewBox="0 0 400 80"><text x="2" y="60">tiny</text></svg>`
	p := Open(t, "data:text/html,"+url.PathEscape(page), View{Width: 800, Height: 600})
	found := strings.Join(Eval[[]string](p, misfits), "\n")
	for _, want := range []string{`"leaves it, wide" leaves its box`, `"is cut, silent" leaves its box`, `"outside" leaves its picture`, `"one" and "two" cover each other`, `"tiny" is less than 8 pixels high`} {
		if !strings.Contains(found, want) {
			t.Errorf("found:\n%s\nexpected %s", found, want)
		}
	}
	for _, good := range []string{"short", "scrolls", "says", "ok"} {
		if strings.Contains(found, `"`+good) {
			t.Errorf("found %q, which fits:\n%s", good, found)
		}
	}
}

// TestDocumentsPictures: no label of a drawing in docs leaves it or covers another one.
func TestDocumentsPictures(t *testing.T) {
	if ontime.Again(t) { // a browser that gets no core doesn't start
		return
	}
	files, err := filepath.Glob("../../../docs/*.svg")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drawing, err := os.ReadFile(filepath.Join("../../../docs", filepath.Base(r.URL.Path)))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(append([]byte("<!DOCTYPE html><html lang=en><title>x</title><link rel=icon href=data:,><body>"), drawing...))
	}))
	defer server.Close()
	p := Open(t, "about:blank", View{Width: 1200, Height: 900})
	for _, file := range files {
		p.Go(server.URL + "/" + filepath.Base(file))
		for _, found := range Eval[[]string](p, misfits) {
			t.Errorf("%s: %s", filepath.Base(file), found)
		}
	}
}
