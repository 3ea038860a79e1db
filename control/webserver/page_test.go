package webserver

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
)

func TestMain(m *testing.M) {
	status := m.Run()
	browser.Clean()
	os.Exit(status)
}

const root = "../.."

// tabs are the page's, and an expression that is true once a tab shows what it should.
var tabs = []struct{ name, shows string }{
	{"ports", `document.querySelectorAll('.plot canvas').length === 3 && document.querySelector('tbody').rows.length === 64 && /[1-9].*bit/.test(document.querySelector('tbody').rows[63].cells[2].textContent)`},
	{"senders", `document.querySelectorAll('tbody')[0].rows.length === 50 && document.querySelectorAll('tbody')[1].rows.length === 50`},
	{"episodes", `document.querySelectorAll('.timeline rect').length === 40`},
	{"notifications", `document.querySelector('tbody').rows.length > 10 && document.querySelector('.why').textContent.includes('70000 bytes')`},
	{"pairing", `document.body.textContent.includes('the UDP source port') && document.body.textContent.includes('confirmed')`},
	{"health", `document.body.textContent.includes('no link since noon')`},
	{"reloads", `document.body.textContent.includes('ports[0].rate: missing')`},
	{"host=10.1.0.0", `document.querySelectorAll('.explanation').length === 1 && document.body.textContent.includes('10.1.0.0 now') === false && document.querySelectorAll('tbody tr').length > 20`},
}

// TestPage: every tab shows what the gateway says, with 64 ports and 100,000 flows, without an error of the browser or of axe-core.
func TestPage(t *testing.T) {
	f := newFake(t, 64, 100_000)
	f.congest(40)
	f.unhealthy["p5"] = "no link since noon"
	page := serve(t, Local("127.0.0.1:0"), NewLive(api.NewClient(f.socket)), os.DirFS(browser.Build(t, root)))
	p := browser.Open(t, page.URL(), view())
	for _, tab := range tabs {
		browser.Eval[string](p, "location.hash = '"+tab.name+"'")
		p.Wait(tab.shows)
		p.Accessible()
		if n := browser.Eval[int](p, "document.querySelectorAll('*').length"); n > 6000 {
			t.Errorf("%s: the page has %d elements", tab.name, n)
		}
		if dir := os.Getenv("CNPGATE_PICTURES"); dir != "" {
			p.Save(dir + "/" + tab.name + ".png")
		}
	}
	p.NoErrors()
}

// view is how the page is looked at: CNPGATE_VIEW=360,dark for pictures of a small dark one.
func view() browser.View {
	v := browser.View{Width: 1280, Height: 900}
	width, scheme, _ := strings.Cut(os.Getenv("CNPGATE_VIEW"), ",")
	if n, err := strconv.ParseInt(width, 10, 64); err == nil {
		v.Width = n
	}
	v.Dark = scheme == "dark"
	return v
}
