package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
)

// TestServiceTriedAgain: a service that fails is tried again for ever, more and more rarely; the log has when it ceased to work, and when it works again.
func TestServiceTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &shared{}
		logger := zerolog.New(log)
		s := services{log: &logger}
		begin := time.Now()
		var tries []time.Duration
		s.use("a", true, 1, func(ctx context.Context, note func(error)) error {
			tries = append(tries, time.Since(begin))
			if len(tries) < 10 || len(tries) == 11 {
				return errors.New("refused")
			}
			note(nil)
			if len(tries) == 10 {
				return errors.New("gone")
			}
			<-ctx.Done()
			return nil
		})
		s.settle()
		if got := s.problems()["a"]; got != "refused" {
			t.Errorf("the problem is %q", got)
		}
		s.use("a", true, 1, func(context.Context, func(error)) error { panic("the settings are the same") })
		time.Sleep(time.Hour)
		synctest.Wait()
		ms := func(n time.Duration) time.Duration { return n * time.Millisecond }
		want := []time.Duration{0, ms(50), ms(150), ms(350), ms(750), ms(1550), ms(3150), ms(6350), ms(12750), ms(22750), ms(22800), ms(22900)}
		if !slices.Equal(tries, want) {
			t.Errorf("tried at %v, want %v", tries, want)
		}
		if got := s.problems(); len(got) > 0 {
			t.Errorf("problems: %v", got)
		}
		for text, n := range map[string]int{`"error":"refused"`: 1, `"error":"gone"`: 1, "works again": 2} {
			if got := strings.Count(log.String(), text); got != n {
				t.Errorf("the log has %s %d times, want %d:\n%s", text, got, n, log)
			}
		}
		s.use("a", false, nil, nil)
		if got := s.list(); len(got) > 0 {
			t.Errorf("left: %v", got)
		}
		s.end()
	})
}

// TestForwardsWithout: a gateway forwards whichever of its services doesn't work at its start, says which and why, and the service works once it can.
func TestForwardsWithout(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	var taken [2]net.Listener // the page's address, and that of the metrics
	for i := range taken {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		taken[i] = l
	}
	for service, c := range map[string]struct {
		lines, want string
		output      func(context.Context) error
		mend        func()
	}{
		"management.listen":  {lines: "management: {listen: \"unix:/proc/none/api.sock\"}", want: "mkdir /proc/none"},
		"management.web":     {lines: fmt.Sprintf("management: {web: {listen: \"%v\"}}", taken[0].Addr())},
		"bypass":             {lines: "bypass: {file: " + missing + "}", want: "no such file"},
		"proxy.ospf":         {lines: "proxy: {enabled: true, ospf: {api: \"127.0.0.1:1\", accept: [{prefix: 10.3.0.0/16}]}}", want: "ospfd"},
		"proxy.ospf6":        {lines: "proxy: {enabled: true, ospf6: {socket: " + missing + ", accept: [{prefix: \"2001:db8::/32\"}]}}", want: "ospf6d"},
		"--report":           {output: func(context.Context) error { return errors.New("no space left on device") }, want: "no space left"},
		"management.metrics": {lines: fmt.Sprintf("management: {metrics: \"%v\"}", taken[1].Addr()), want: "address already in use", mend: func() { _ = taken[1].Close() }},
	} {
		t.Run(service, func(t *testing.T) {
			cfg, b := newBench(t, []int{0}, "backoff", "1Gbps", 0)
			cfg, err := config.Parse("gw.yaml", []byte(string(cfg.File.Text)+c.lines+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			log, over := &shared{}, make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				_, err := Run(ctx, cfg, b, Options{Log: zerolog.New(log), Output: c.output})
				over <- err
			}()
			log.await(t, `"message":"The gateway is forwarding."`)
			log.await(t, `"service":"`+service+`","error":"`)
			log.await(t, c.want)
			if c.mend != nil {
				c.mend()
				log.await(t, `"service":"`+service+`","message":"The service works again."`)
			}
			stop()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
}
