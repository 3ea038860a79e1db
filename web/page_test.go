package web

import (
	"net/http/httptest"
	"os"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/browser"
)

func TestMain(m *testing.M) {
	status := m.Run()
	browser.Clean()
	os.Exit(status)
}

// open opens a file of the page, served with its headers.
func open(t *testing.T, file string, v browser.View) *browser.Page {
	t.Helper()
	server := httptest.NewServer(Handler(os.DirFS(browser.Build(t, ".."))))
	t.Cleanup(server.Close)
	return browser.Open(t, server.URL+"/"+file, v)
}

// TestAccessible: axe-core finds nothing.
func TestAccessible(t *testing.T) {
	p := open(t, "index.html", browser.View{Width: 1280, Height: 800})
	p.Accessible()
	p.NoErrors()
}
