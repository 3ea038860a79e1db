package config

import (
	"errors"
	"reflect"
	"testing"
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
	if !errors.As(err, &list) || len(list.Problems) == 0 || len(list.Problems) > MaxProblems {
		t.Fatalf("got %#v", err)
	}
	if n := len(err.Error()); n > 32<<10 {
		t.Fatalf("the error has %d bytes", n)
	}
	for i, p := range list.Problems {
		if p.Line < 1 || p.Column < 1 || p.Text == "" {
			t.Fatalf("problem without place or text: %#v", p)
		}
		if i > 0 && comparePositions(list.Problems[i-1].Position, p.Position) > 0 {
			t.Fatalf("not in order: %v", list.Problems)
		}
	}
}

func checkComplete(t *testing.T, cfg *Config) {
	t.Helper()
	if cfg.Gateway.Name == "" || len(cfg.DPDK.Workers) == 0 || cfg.DPDK.Burst == 0 || cfg.Flows.Capacity == 0 || cfg.Flows.Aging == 0 {
		t.Fatalf("incomplete: %+v", cfg)
	}
	for i, p := range cfg.Ports {
		peer := cfg.Ports[p.Peer]
		if peer.Peer != i || peer.Role == p.Role || p.Name == "" || p.Device == "" {
			t.Fatalf("port %d is not half of a pair: %+v", i, p)
		}
		if p.KMin == 0 || p.KMin >= p.KMax || p.KMax >= p.QueueCapacity || p.QueueFrames < minFrames || p.Rate == 0 || p.MTU == 0 {
			t.Fatalf("port %d has no sound queue: %+v", i, p)
		}
		var all uint64
		for _, c := range p.Classes {
			if all&c.DSCP != 0 {
				t.Fatalf("port %d: a DSCP in two classes: %+v", i, p.Classes)
			}
			all |= c.DSCP
		}
		if all != ^uint64(0) {
			t.Fatalf("port %d: a DSCP in no class: %+v", i, p.Classes)
		}
	}
}
