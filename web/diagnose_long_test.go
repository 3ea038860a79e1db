//go:build long

package web

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/internal/testkit/browser"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// large writes a capture of at least so many bytes: the packets of a small one again and again, each time between other hosts and of whole length.
func large(t *testing.T, size int) (path string) {
	t.Helper()
	from, err := os.Open(cases + "selrep_behind.pcap.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	r, err := capturefile.NewReader("in", from)
	if err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	var infos []gopacket.CaptureInfo
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, append(slices.Clone(f.Octets), make([]byte, int(f.Length)-len(f.Octets))...))
		infos = append(infos, gopacket.CaptureInfo{Timestamp: time.Unix(0, f.Time), CaptureLength: int(f.Length), Length: int(f.Length)})
	}
	path = filepath.Join(t.TempDir(), "large.pcap")
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	b := bufio.NewWriterSize(to, 1<<20)
	w := pcapgo.NewWriterNanos(b)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for n, written := 0, 0; written < size; n++ {
		for i, f := range frames {
			for _, ip := range []int{26, 30} { // IPv4's addresses: 10.x.0.1
				f[ip+2], f[ip+3] = byte(n>>8), byte(n)
			}
			infos[i].Timestamp = infos[i].Timestamp.Add(10 * time.Millisecond)
			if err := w.WritePacket(infos[i], f); err != nil {
				t.Fatal(err)
			}
			written += 16 + len(f)
		}
	}
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDiagnoseLarge: while a large capture is read, the page draws and says how far it is; Cancel ends that, and the next capture is read.
// CNPGATE_LARGE is another size for it, bytes.
func TestDiagnoseLarge(t *testing.T) {
	size := 100_000_000
	if text := os.Getenv("CNPGATE_LARGE"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	browser.Build(t, "..") // not in each attempt
	if ontime.Again(t) {
		return
	}
	path := large(t, size)
	p := open(t, "diagnose.html", laptop)
	choose(p, path)
	p.Wait(`!document.getElementById("busy").hidden && document.getElementById("progress").value > 0`)
	browser.Eval[bool](p, `document.getElementById("cancel").click(), true`)
	p.Wait(`document.getElementById("busy").hidden && document.getElementById("message").textContent.startsWith("Cancelled")`)
	browser.Eval[bool](p, `(() => {
		const values = new Set(), begin = performance.now();
		let frames = 0, longest = 0, last = begin;
		const frame = (now) => {
			frames++;
			[longest, last] = [Math.max(longest, now - last), now];
			values.add(document.getElementById("progress").value);
			if (!document.querySelector(".conclusion")) requestAnimationFrame(frame);
			else window.seen = {Frames: frames, Seconds: (now - begin) / 1000, Longest: longest, Values: values.size};
		};
		requestAnimationFrame(frame);
		return true;
	})()`)
	choose(p, path)
	for begin := time.Now(); time.Since(begin) < 20*time.Minute; { // each wait is bounded
		if browser.Eval[bool](p, `new Promise((done) => setTimeout(() => done(Boolean(window.seen)), 500))`) {
			break
		}
	}
	got := browser.Eval[struct{ Frames, Seconds, Longest, Values float64 }](p, `window.seen`)
	judged(p, "large.pcap")
	t.Logf("%d bytes in %.1f s: %.0f frames a second, at most %.0f ms from one to the next; %.0f steps of progress", size, got.Seconds, got.Frames/got.Seconds, got.Longest, got.Values)
	if got.Frames < 10*got.Seconds || got.Values < 3 {
		t.Errorf("%+v; expected 10 frames a second, and progress", got)
	}
	r, _ := answer(t, path)
	if text := browser.Eval[string](p, `document.querySelector(".conclusion").textContent`); text != r.Conclusion || len(r.Verdicts) == 0 {
		t.Errorf("the page says %q, replay --health %q", text, r.Conclusion)
	}
	p.NoErrors()
}

// TestDiagnosePictures: the view looks as it did, and fits each screen.
func TestDiagnosePictures(t *testing.T) {
	p := open(t, "diagnose.html", laptop)
	dir := os.Getenv("CNPGATE_PICTURES") // for people to look at
	names := []string{"", "sll2_twice.pcap.zst", "restart_0_0.pcap.zst"}
	if dir != "" {
		names = append(names, "e_spur64.pcap.zst", "selrep_behind.pcap.zst", "f_ignores_cnps.pcap.zst", "e_read256.pcap.zst", "capdrop_bursts.pcap.zst", "ce_no_cnp.pcap.zst",
			"read_adaptive40.pcap.zst", "rnr_exceeded.pcap.zst", "blackhole_nak.pcap.zst")
	}
	for _, name := range names {
		if name != "" {
			path, err := filepath.Abs(cases + name)
			if err != nil {
				t.Fatal(err)
			}
			choose(p, path)
			judged(p, name)
		}
		if name == "sll2_twice.pcap.zst" {
			for _, v := range browser.Views[:3] {
				p.Look(v)
				p.Screenshot("testdata/pictures/diagnose-" + plain(uint64(v.Width)) + ".png")
			}
		}
		p.Fits("diagnose-"+strings.TrimSuffix(name, ".pcap.zst"), laptop)
	}
	p.NoErrors()
}
