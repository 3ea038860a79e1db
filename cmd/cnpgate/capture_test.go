package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// emitted are notifications that a gateway sends: the golden ones that a sender gets, with a reason each.
func emitted(t *testing.T) (all []report.Notification) {
	t.Helper()
	for i := range notifications.All {
		g := &notifications.All[i]
		if g.Kind == "pause" || g.Kind == "pfc" {
			continue
		}
		frame := g.Bytes()
		all = append(all, report.Notification{
			Time: time.Unix(1_700_000_000, int64(i)*1001).UTC(), Number: uint64(i), Outcome: "sent", Kind: g.Kind, Action: "rate-reduce", Parameter: 30,
			Port: "wan0", Class: "data", SentBy: []string{"dc0", "dc1"}[i%2], Why: "queue wan0/data is full of " + g.Kind, Length: len(frame), Frame: frame,
		})
	}
	return all
}

// emittingAt is a gateway at a socket. It sends notifications as soon as a client requests them, and more only when it ends.
func emittingAt(t *testing.T, path string, all []report.Notification, lost uint64) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := json.NewEncoder(w)
		switch r.URL.Path {
		case api.NotificationsPath:
			_ = out.Encode(api.Notifications{Notifications: all})
			return
		case "/v1/packets/stream":
			p := report.Packet{Time: time.Unix(1_700_000_001, 0).UTC(), Port: "dc0", Length: 1000, Frame: make([]byte, 256)}
			if r.URL.Query().Get("decisions") == "true" {
				p.Decisions = []report.Decision{{Stage: "send", Decision: "by port wan, for " + r.URL.Query().Get("destination_qp")}}
			}
			if reason := r.URL.Query().Get("drops"); reason != "" {
				p.Decisions = []report.Decision{{Stage: "end", Decision: "for " + reason}}
			}
			_ = out.Encode(api.StreamedPacket{Packet: &p})
			_ = out.Encode(api.StreamedPacket{Lost: 5})
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		if lost > 0 {
			_ = out.Encode(api.Streamed{Lost: lost})
		}
		for i := range all {
			_ = out.Encode(api.Streamed{Notification: &all[i]})
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
}

// wantCaptured checks that a file has the notifications that were sent, with their comments, and its statistics.
func wantCaptured(t *testing.T, file []byte, all []report.Notification, lost uint64) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		n := &all[i]
		data, info, options, err := r.ReadPacketDataWithOptions()
		if err != nil {
			t.Fatalf("packet %d: %v", i, err)
		}
		if !bytes.Equal(data, n.Frame) || !info.Timestamp.Equal(n.Time) || len(options.Comments) != 1 || options.Comments[0] != n.Comment() {
			t.Errorf("packet %d of %v: %q", i, info.Timestamp, options.Comments)
		}
		if port, err := r.Interface(info.InterfaceIndex); err != nil || port.Name != n.SentBy {
			t.Errorf("packet %d is of interface %+v, %v", i, port, err)
		}
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last packet: %v", err)
	}
	whole, err := r.Interface(0)
	if want := uint64(len(all)) + lost; err != nil || whole.Statistics.PacketsReceived != want || whole.Statistics.PacketsDropped != lost {
		t.Errorf("statistics %+v, %v", whole.Statistics, err)
	}
}

func TestCapture(t *testing.T) {
	dir, all := workspace(t), emitted(t)
	emittingAt(t, filepath.Join(dir, "gw.sock"), all, 0)
	emittingAt(t, filepath.Join(dir, "busy.sock"), all, 7)
	got := cnpgate(t, dir, "capture", "-w", "out.pcapng", "--count", "3", "--socket", "gw.sock")
	if got.status != 0 || got.stdout != "" || !strings.Contains(got.stderr, "3 notifications captured, 0 lost") {
		t.Errorf("%+v", got)
	}
	wantCaptured(t, []byte(get(t, dir, "out.pcapng")), all[:3], 0)
	got = cnpgate(t, dir, "capture", "--write", "-", "--duration", "1s", "--socket", "busy.sock")
	if got.status != 0 || !strings.Contains(got.stderr, " captured, 7 lost") {
		t.Errorf("%+v", got.stderr)
	}
	wantCaptured(t, []byte(got.stdout), all, 7)
	put(t, dir, "before", []byte("a capture of before"))
	if got := cnpgate(t, dir, "capture", "-w", "before", "--socket", "none.sock"); got.status != 1 || get(t, dir, "before") != "a capture of before" {
		t.Errorf("without a gateway, exit status %d, and the file has %q", got.status, get(t, dir, "before"))
	}
	for args, want := range map[string]string{
		"--socket gw.sock":                           "no file to write to",
		"-w x --outcome suppressed --socket gw.sock": "has no frame",
		"-w x --duration -1s --socket gw.sock":       "expected more than 0",
		"-w x --socket none.sock":                    "no socket at none.sock",
		"-w none/x --socket gw.sock":                 "none/x: no such file or directory",
		"-w /dev/full --count 1000 --socket gw.sock": "no space left on device",
		"-w x more --socket gw.sock":                 `"more"`,
		"-w x --drops link-down --socket gw.sock":    "expected all, to-gateway, queue-full-bytes",
		"-w x --drops all --kind ppfc":               "exclude each other",
	} {
		if got := within(t, dir, append([]string{"capture"}, strings.Fields(args)...)...); got.status != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: exit status %d, %s", args, got.status, got.stderr)
		}
	}
}

// TestCaptureOfPackets: a capture has a flow's packets beside its notifications, and decode prints what was decided about them.
func TestCaptureOfPackets(t *testing.T) {
	dir, all := workspace(t), emitted(t)[:2]
	emittingAt(t, filepath.Join(dir, "gw.sock"), all, 0)
	for _, how := range []string{"--data", "--trace"} {
		got := cnpgate(t, dir, "capture", "-w", "out.pcapng", "--flow", "10.0.0.1,10.0.0.2,0x11", how, "--count", "3", "--duration", "30s", "--socket", "gw.sock")
		if got.status != 0 || !strings.Contains(got.stderr, "capturing notifications and packets") || !strings.Contains(got.stderr, "3 notifications and packets captured") {
			t.Errorf("%s: %+v", how, got)
		}
		decoded := cnpgate(t, dir, "decode", "out.pcapng")
		said := strings.Contains(decoded.stdout, "    comment    send: by port wan, for 0x11\n")
		if decoded.status != 0 || said != (how == "--trace") || !strings.Contains(decoded.stdout, "3 frames: 2 notifications accepted") {
			t.Errorf("%s: %+v", how, decoded)
		}
	}
	got := cnpgate(t, dir, "capture", "-w", "-", "--drops", "queue-full-bytes", "--count", "1", "--duration", "30s", "--socket", "gw.sock")
	if got.status != 0 || !strings.Contains(got.stderr, "1 dropped frames captured") {
		t.Errorf("drops: %+v", got.stderr)
	}
	put(t, dir, "drops.pcapng", []byte(got.stdout))
	if decoded := cnpgate(t, dir, "decode", "drops.pcapng"); !strings.Contains(decoded.stdout, "    comment    end: for queue-full-bytes\n") {
		t.Errorf("drops: %+v", decoded)
	}
	if got := cnpgate(t, dir, "capture", "-w", "none/x", "--flow", "10.0.0.1,10.0.0.2", "--data", "--socket", "gw.sock"); got.status != 1 || strings.Count(got.stderr, "none/x: no such file or directory") != 1 {
		t.Errorf("%+v", got)
	}
}

// TestCaptureInterrupted: Ctrl-C ends the capture with a whole file.
func TestCaptureInterrupted(t *testing.T) {
	dir, all := workspace(t), emitted(t)
	emittingAt(t, filepath.Join(dir, "gw.sock"), all, 0)
	c := command(dir, "capture", "-w", "-", "--socket", "gw.sock")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stdout = in
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	var file bytes.Buffer
	r, err := pcapgo.NewNgReader(bufio.NewReaderSize(io.TeeReader(out, &file), 16), pcapgo.DefaultNgReaderOptions)
	for range all { // each is there before the end
		if err == nil {
			_, _, err = r.ReadPacketData()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last packet: %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	wantCaptured(t, file.Bytes(), all, 0)
}

func TestShowNotifications(t *testing.T) {
	dir, all := workspace(t), emitted(t)[:1]
	qp, evidence := uint32(17), "psn"
	all[0].SourceQP, all[0].QPEvidence, all[0].DestinationQP, all[0].Level = &qp, &evidence, 18, 200
	emittingAt(t, filepath.Join(dir, "gw.sock"), all, 0)
	got := cnpgate(t, dir, "show", "notifications", "--wide", "--socket", "gw.sock", "--source", "10.0.0.1")
	for _, part := range []string{"WHY\n", "wan0", "data", all[0].Kind + "  rate-reduce 30 %  200", "17  psn", all[0].Why + "\n"} {
		if got.status != 0 || !strings.Contains(got.stdout, part) {
			t.Errorf("exit status %d, no %q in\n%s%s", got.status, part, got.stdout, got.stderr)
		}
	}
	if got = cnpgate(t, dir, "show", "notifications", "--socket", "gw.sock", "-o", "json"); got.status != 0 || !json.Valid([]byte(got.stdout)) {
		t.Errorf("exit status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}
