package config

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// Any input makes a snapshot or an error, never both and never a panic; errors stay small and each has its place; a snapshot is
// complete.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml"} {
		for _, name := range files(f, pattern) {
			f.Add(read(f, name))
		}
	}
	for _, s := range []string{"", "\t", "a: &a [*a, *a]\n", "? ?\n: - ?\n", "%TAG ! !\n--- !x\n", "--- |\n", "*a *b", "#\n- - -\n#", "{[]: ,}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		cfg, err := Parse("f", data)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("got %v, %v", cfg, err)
		}
		again, err2 := Parse("f", data)
		for _, c := range []*Config{cfg, again} {
			if c != nil {
				c.doc, c.root, c.file = nil, nil, nil
			}
		}
		if !reflect.DeepEqual(cfg, again) || !reflect.DeepEqual(err, err2) {
			t.Fatal("the same input gave something else the second time")
		}
		if err != nil {
			checkError(t, err)
			return
		}
		checkComplete(t, cfg)
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var list *Error
	if !errors.As(err, &list) || len(list.Problems) == 0 || len(list.Problems) > yamldoc.MaxProblems {
		t.Fatalf("got %#v", err)
	}
	if n := len(err.Error()); n > 32<<10 {
		t.Fatalf("the error has %d bytes", n)
	}
	for i, p := range list.Problems {
		if p.Line < 1 || p.Column < 1 || p.Text == "" {
			t.Fatalf("problem without place or text: %#v", p)
		}
		if i > 0 && list.Problems[i-1].Line > p.Line {
			t.Fatalf("not in order: %v", list.Problems)
		}
	}
}

func checkComplete(t *testing.T, cfg *Config) {
	t.Helper()
	if cfg.Name == "" || len(cfg.DPDK.Workers) == 0 || cfg.DPDK.Burst == 0 || cfg.Dataplane.Flows == 0 || cfg.Dataplane.Aging == 0 {
		t.Fatalf("incomplete: %+v", cfg)
	}
	for i, p := range cfg.Ports {
		peer := cfg.Ports[p.Peer]
		if peer.Peer != i || peer.Role == p.Role || p.Name == "" || p.Device == "" {
			t.Fatalf("port %d is not half of a pair: %+v", i, p)
		}
		if p.Policy.KMin == 0 || p.Policy.KMin >= p.Policy.KMax || p.Policy.KMax >= p.Capacity || p.Frames < minFrames || p.Rate == 0 || p.MTU == 0 {
			t.Fatalf("port %d has no sound queue: %+v", i, p)
		}
		if p.Classes < 1 || len(p.ClassNames) != p.Classes || slices.Max(p.ClassOf[:]) >= uint8(p.Classes) {
			t.Fatalf("port %d: %d classes, and a DSCP is in one that isn't there: %v", i, p.Classes, p.ClassOf)
		}
	}
}
