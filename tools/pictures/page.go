package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/control/webserver"
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
	verdict, err := drawPart(to, "file://"+name+pageState, 1100, isShown, `document.getElementById("verdict").textContent`, onlyPart, ".panes")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(says, verdict)
	return err
}

// What is shown of a diagnosis: the plot of its worst connection, without what is for the use of it.
const (
	isPlotted = `document.querySelector(".sequence:not(.stale) canvas") !== null`
	onlyPlot  = `document.styleSheets[0].insertRule(".tools, .sequence .said, .sequence details { display: none !important }"), true`
)

// drawDiagnosis writes a picture (PNG) of the plot that replay --health --web shows of a capture, and the conclusion to `says`.
func drawDiagnosis(to, says io.Writer, file string) (err error) {
	capture, err := replay.Open(file, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, capture.Close()) }()
	d, err := replay.Diagnose(capture, replay.HealthOptions{})
	if err != nil {
		return err
	}
	server, err := webserver.Open(webserver.Local("127.0.0.1:0"), &webserver.Diagnosis{Diagnosis: d}, log.New(says, "", 0))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	_, err = drawPart(to, server.URL()+"diagnose.html#report", 900, isPlotted, `document.title`, onlyPlot, ".sequence")
	stop()
	if _, printed := fmt.Fprintln(says, file+":", d.Report.Conclusion); err == nil {
		err = printed
	}
	return errors.Join(err, <-served)
}

// drawPart opens an address in a window of a width, waits until an expression is true, and writes a picture of the element that a selector finds. The value of
// says is returned, and prepare is evaluated before the picture is made.
func drawPart(to io.Writer, address string, width int64, until, says, prepare, selector string) (said string, err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, end := chromedp.NewContext(ctx)
	defer end()
	sized := chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
		return err
	})
	if err := chromedp.Do(ctx, sized, chromedp.Navigate(address)); err != nil {
		return "", err
	}
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](until, chromedp.WithPollingTimeout(pageTime))); err != nil {
		return "", err
	}
	if said, err = chromedp.Run(ctx, chromedp.Evaluate[string](says)); err != nil {
		return "", err
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](prepare)); err != nil {
		return "", err
	}
	picture, err := chromedp.Run(ctx, chromedp.Screenshot(chromedp.CSS(selector)))
	if err != nil {
		return "", err
	}
	_, err = to.Write(picture)
	return said, err
}
