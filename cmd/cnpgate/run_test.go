package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/report"
)

// TestReportBeforeDevices: the report is whole, under its name, before the devices are closed, and also when they can't be; what failed is said.
func TestReportBeforeDevices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	out := outputs{{flag: "--report", path: path}}
	if err := out.open(); err != nil {
		t.Fatal(err)
	}
	closed := false
	err := finish(&report.Report{Gateway: "gw"}, out, func() error {
		text, err := os.ReadFile(path)
		closed = err == nil && strings.HasSuffix(string(text), "}\n") && strings.Contains(string(text), `"gateway": "gw"`)
		return errors.New("the device hangs")
	})
	if !closed || err == nil || !strings.Contains(err.Error(), "the device hangs") {
		t.Errorf("the report was there: %v; error %v", closed, err)
	}
}

// TestNoReport: without one, what was begun is removed.
func TestNoReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	out := outputs{{flag: "--report", path: path}}
	if err := out.open(); err != nil {
		t.Fatal(err)
	}
	if err := finish(nil, out, func() error { return nil }); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
