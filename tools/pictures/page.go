package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// What is shown of the playground: both panes after 12 ms, with two of their plots.
const (
	pageState = "#scenario=incast-10ms&t=12000000&pause=1"
	isShown   = `document.getElementById("verdict").textContent.includes("sooner")`
	onlyPart  = `document.styleSheets[0].insertRule(".plots > :nth-child(n+3), .latest, .plot-table { display: none !important }"), true`
	pageTime  = 2 * time.Minute
)

// drawPage writes a picture (PNG) of the playground, a single-file page, and what it says to `says`.
func drawPage(to, says io.Writer, file string) error {
	name, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, end := chromedp.NewContext(ctx)
	defer end()
	sized := chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1100, Height: 900, DeviceScaleFactor: 1})
		return err
	})
	if err := chromedp.Do(ctx, sized, chromedp.Navigate("file://"+name+pageState)); err != nil {
		return err
	}
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](isShown, chromedp.WithPollingTimeout(pageTime))); err != nil {
		return err
	}
	verdict, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.getElementById("verdict").textContent`))
	if err != nil {
		return err
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](onlyPart)); err != nil {
		return err
	}
	picture, err := chromedp.Run(ctx, chromedp.Screenshot(chromedp.CSS(".panes")))
	if err != nil {
		return err
	}
	fmt.Fprintln(says, verdict)
	_, err = to.Write(picture)
	return err
}
