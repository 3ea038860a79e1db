// Package browser drives a headless Chromium for the tests of the page.
package browser

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// limit bounds each wait for the browser. It is long, as other work may keep the browser off its cores.
const limit = 2 * time.Minute

// variable names the folder of the page in a process that makes an attempt of a test (see ontime).
const variable = "CNPGATE_PAGE"

// Build builds the page, once for a test binary and the attempts that it starts afterwards, and returns its folder. root is the project's folder.
func Build(t testing.TB, root string) string {
	t.Helper()
	for _, folder := range []string{"web/src", "web/vendor", "web/wasm", "tools/web"} {
		see(t, filepath.Join(root, folder))
	}
	built.Do(func() {
		if built.dir = os.Getenv(variable); built.dir != "" {
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "cnpgate-page"); built.err != nil {
			return
		}
		built.own = true
		c := exec.Command("go", "run", "-tags", "nodpdk", "./tools/web", "-o", built.dir)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("building the page: %w\n%s", err, out)
			return
		}
		built.err = os.Setenv(variable, built.dir)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// see opens the files below a folder, so that go test knows that the test depends on them.
func see(t testing.TB, folder string) {
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

var built struct {
	sync.Once
	dir string
	own bool // this process has built it
	err error
}

// Clean removes what Build has built. TestMain calls it.
func Clean() {
	if built.own {
		os.RemoveAll(built.dir)
	}
}

// Page is an open page.
type Page struct {
	t       testing.TB
	context context.Context
	mutex   sync.Mutex
	errors  []string
}

// View is how a page is looked at.
type View struct {
	Width, Height int64
	Dark          bool
	Still         bool // the user prefers reduced motion
}

// Open opens a page of its own browser, which ends with the test.
func Open(t testing.TB, url string, v View) *Page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(limit),
		chromedp.UserDataDir(filepath.Join(t.TempDir(), "profile")), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"))
	if effort.Long == 0 { // optimizing WebAssembly takes longer than what the default run computes by it
		options = append(options, chromedp.Flag("js-flags", "--liftoff-only"))
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		stop()
		stopAllocator()
	})
	p := &Page{t: t, context: ctx}
	p.Look(v)
	messages := chromedp.Console(ctx)
	go p.listen(messages)
	p.Go(url)
	return p
}

// Go opens another page in its place.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(url))
}

// Look changes how the page is looked at, and returns once it is drawn so.
func (p *Page) Look(v View) {
	p.t.Helper()
	p.Do(look(v))
	Eval[bool](p, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))")
}

func look(v View) chromedp.Action[chromedp.Void] {
	scheme, motion := "light", "no-preference"
	if v.Dark {
		scheme = "dark"
	}
	if v.Still {
		motion = "reduce"
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion}}
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: v.Width, Height: v.Height, DeviceScaleFactor: 1})
		if err != nil {
			return err
		}
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	})
}

// listen notes what the browser reports as an error.
func (p *Page) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return
		}
		if m.IsException() || m.Type == "error" || m.Type == "warning" || m.Type == "assert" {
			p.mutex.Lock()
			p.errors = append(p.errors, fmt.Sprintf("%s: %s (%s:%d)", m.Type, m.Text, m.URL, m.Line+1))
			p.mutex.Unlock()
		}
	}
}

// Errors are the exceptions, errors and warnings so far.
func (p *Page) Errors() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.errors)
}

// NoErrors fails the test if there were errors other than those that contain one of the expected texts.
func (p *Page) NoErrors(expected ...string) {
	p.t.Helper()
	for _, e := range p.Errors() {
		if !slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(e, text) }) {
			p.t.Errorf("the page reports: %s", e)
		}
	}
}

// Do runs actions.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	Run(p, chromedp.Steps(actions...))
}

// Run runs an action and returns its value.
func Run[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() { // not in a context that ends earlier: the browser would end with that of the first call
		value, err := chromedp.Run(p.context, action)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			p.t.Fatalf("the browser: %v; the page reports %q", r.err, p.Errors())
		}
		return r.value
	case <-time.After(limit):
		p.t.Fatalf("the browser doesn't answer within %v; the page reports %q", limit, p.Errors())
	}
	panic("Fatalf returns")
}

// Eval returns the value of an expression, which may be a promise.
func Eval[T any](p *Page, script string) T {
	p.t.Helper()
	return Run(p, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Wait waits until an expression is true.
func (p *Page) Wait(script string) {
	p.t.Helper()
	Run(p, chromedp.Poll[chromedp.Void](script, chromedp.WithPollingTimeout(limit), chromedp.WithPollingInterval(20*time.Millisecond)))
}
