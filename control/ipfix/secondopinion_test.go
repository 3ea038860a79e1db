//go:build secondopinion

package ipfix

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// TestCollector: nfcapd receives the records, and nfdump prints addresses, packets and bytes.
func TestCollector(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.LocalAddr().String()
	_, port, _ := net.SplitHostPort(address)
	free.Close()
	dir := t.TempDir()
	collector := exec.Command("nfcapd", "-b", "127.0.0.1", "-p", port, "-w", dir, "-t", "2")
	if err := collector.Start(); err != nil {
		t.Fatalf("%v; run scripts/setup --test", err)
	}
	ended := make(chan struct{})
	go func() { _ = collector.Wait(); close(ended) }()
	defer func() { _ = collector.Process.Kill(); <-ended }()
	text := ""
	for deadline, packets := time.Now().Add(30*time.Second), uint64(100); time.Now().Before(deadline); packets += 100 {
		e, err := New(address, 1)
		if err != nil {
			t.Fatal(err)
		}
		_ = e.Export(reportOf(100), time.Now()) // refused until it listens
		e.Close()
		time.Sleep(200 * time.Millisecond)
		files, _ := filepath.Glob(filepath.Join(dir, "nfcapd.2*"))
		if len(files) == 0 {
			continue
		}
		out, err := exec.Command("nfdump", "-q", "-R", dir, "-o", "fmt:%sa %da %dp %pr %pkt %byt").CombinedOutput()
		if text = string(out); err == nil && strings.Contains(text, "10.1.0.1") && strings.Contains(text, "fd00:1") {
			break
		}
	}
	for _, want := range []string{"10.1.0.1", "10.9.0.9", "4791", "UDP", "100"} {
		if !strings.Contains(text, want) {
			t.Errorf("nfdump doesn't print %s: %s", want, text)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
