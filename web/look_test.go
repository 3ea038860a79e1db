package web

import (
	"os"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/browser"
)

func TestLook(t *testing.T) {
	for _, v := range []struct {
		name string
		view browser.View
	}{{"1280l", browser.View{Width: 1280, Height: 900}}, {"360d", browser.View{Width: 360, Height: 800, Dark: true}}, {"3840", browser.View{Width: 3840, Height: 2160}}} {
		p := open(t, "index.html#scenario=incast-10ms&t=12000000&pause=1", v.view)
		p.Wait(`document.getElementById("numbers").rows.length > 5 || document.querySelector("#message.wrong")`)
		time.Sleep(time.Second)
		p.Save(os.Getenv("SHOTS") + "/" + v.name + ".png")
		for i, e := range p.Errors() {
			if i < 3 {
				t.Log(e[:min(len(e), 600)])
			}
		}
		t.Log(browser.Eval[string](p, `document.getElementById("message").textContent`))
	}
}
