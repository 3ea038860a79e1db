package browser

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update-pictures", false, "write the golden screenshots")

// Sizes of what is compared: a picture is reduced to blocks, whose mean brightness and colour doesn't depend on how a font is drawn.
const (
	blocks  = 96  // across
	differs = 24  // of 255: a block that is a different one to the eye
	most    = 100 // one block in this many may differ
)

// Screenshot compares the visible part of the page with a golden picture by what an eye can see, and writes what it found beside the test's other files if
// they differ.
func (p *Page) Screenshot(golden string) {
	p.t.Helper()
	shot := Run(p, chromedp.CaptureScreenshot())
	got, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatal(err)
	}
	small := reduce(got)
	if *update {
		var b bytes.Buffer
		e := png.Encoder{CompressionLevel: png.BestCompression}
		if err := e.Encode(&b, small); err != nil {
			p.t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	f, err := os.Open(golden)
	if err != nil {
		p.t.Fatalf("%v; -update-pictures writes it", err)
	}
	defer f.Close()
	want, err := png.Decode(f)
	if err != nil {
		p.t.Fatal(err)
	}
	if part := Difference(want, small); part > 1.0/most {
		seen := filepath.Join(os.TempDir(), "cnpgate-"+filepath.Base(golden))
		_ = os.WriteFile(seen, shot, 0o644)
		p.t.Errorf("%s: %.1f %% of the picture looks different, expected at most %d %%; the page now: %s; -update-pictures accepts it", golden, 100*part, 100/most, seen)
	}
}

// reduce averages blocks of a picture.
func reduce(from image.Image) *image.RGBA {
	b := from.Bounds()
	side := max((b.Dx()+blocks-1)/blocks, 1)
	to := image.NewRGBA(image.Rect(0, 0, b.Dx()/side, b.Dy()/side))
	for y := range to.Bounds().Dy() {
		for x := range to.Bounds().Dx() {
			var sum [3]uint64
			for dy := range side {
				for dx := range side {
					r, g, bl, _ := from.At(b.Min.X+x*side+dx, b.Min.Y+y*side+dy).RGBA()
					sum[0], sum[1], sum[2] = sum[0]+uint64(r>>8), sum[1]+uint64(g>>8), sum[2]+uint64(bl>>8)
				}
			}
			at := to.PixOffset(x, y)
			for i := range sum {
				to.Pix[at+i] = uint8(sum[i] / uint64(side*side))
			}
			to.Pix[at+3] = 255
		}
	}
	return to
}

// Difference is the part of two pictures' blocks that look different; 1 if their sizes differ.
func Difference(a, b image.Image) float64 {
	if a.Bounds() != b.Bounds() {
		return 1
	}
	n, different := 0, 0
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			n++
			if distance(a, b, x, y) > differs {
				different++
			}
		}
	}
	return float64(different) / math.Max(float64(n), 1)
}

// distance is that of two pixels, weighted as the eye sees red, green and blue.
func distance(a, b image.Image, x, y int) float64 {
	r1, g1, b1, _ := a.At(x, y).RGBA()
	r2, g2, b2, _ := b.At(x, y).RGBA()
	part := func(weight float64, x, y uint32) float64 {
		d := (float64(x) - float64(y)) / 257
		return weight * d * d
	}
	return math.Sqrt(part(0.3, r1, r2) + part(0.59, g1, g2) + part(0.11, b1, b2))
}

// Save writes a full screenshot to a file, for people to look at.
func (p *Page) Save(name string) {
	p.t.Helper()
	shot := Run(p, chromedp.FullScreenshot(100))
	if err := os.WriteFile(name, shot, 0o644); err != nil {
		p.t.Fatal(fmt.Errorf("screenshot: %w", err))
	}
}
