package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/capture"
	"github.com/cnpgate/cnpgate/dataplane/counters"
)

type captureFlags struct {
	showFlags
	filter   notificationFilter
	flow     flowFlag
	file     string
	count    uint64
	duration time.Duration
	// Packets of the flow are captured with data or trace, at most rate of them a second.
	data, trace bool
	rate        uint
	drops       string // the reason for which frames are dropped, which are captured in place of notifications; "": none
}

// packets reports whether packets of the flow are captured, too, or frames that are dropped.
func (f *captureFlags) packets() bool { return f.data || f.trace || f.drops != "" }

func captureCommand() *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture [-w FILE|-] [--flow SRC,DST[,QP]] [--data | --trace | --drops all|REASON] [--rate N] [--count N] [--duration TIME] [FILTERS] [--socket PATH | --config FILE]",
		Short: "Capture the notifications that the running gateway sends, a flow's packets, or dropped frames, as pcapng with the reason in a comment",
		Long: `Writes each notification that the gateway sends from now on, until Ctrl-C, --count or --duration, as a packet of a pcapng file. The packet's comment
gives the threshold that the queue exceeded, and the flow that caused it. Wireshark and tshark show it (frame.comment); with deploy/wireshark/cnpgate.lua
they also dissect the notification. "-" is standard output: cnpgate capture -w - | tshark -r -. In observe mode the capture has the notifications that
would have been sent, and their comments say so. At the end the command prints how many notifications it captured, and how many were overwritten before
it could read them; the file's interface statistics also have the latter.

--flow is short for --source and --destination. With --data, the capture also has the flow's packets, as they arrived, of each the first 256 bytes, and
at most --rate a second. With --trace, their comments say what each stage decided: how the packet was parsed, whether its flow was known, which QP sent it, its
queue, whether its sender was notified or why not, whether it was marked or why not, and when it left. cnpgate decode prints the comments, too. Forwarding doesn't wait
for a capture: packets beyond the rate, or that the reader is too slow for, are left out and counted as lost.

With --drops, the capture has no notifications, but the frames that the gateway drops, at most --rate a second, for any reason or one of those of
cnpgate show counters; their comments have it. Frames that a device drops itself, such as those longer than the MTU, can't be captured: --trace says so of a flow.`,
		RunE: func(c *cobra.Command, _ []string) error { return f.capture(c) },
	}
	c.Flags().StringVarP(&f.file, "write", "w", "", `file to write to; "-" for standard output`)
	c.Flags().Uint64Var(&f.count, "count", 0, "end after this many frames")
	c.Flags().DurationVar(&f.duration, "duration", 0, "end after this time, such as 10s")
	c.Flags().Var(&textFlag{kind: "SRC,DST[,QP]", read: f.flow.read}, "flow", "only about this flow: the sender's and the receiver's address and, if given, the receiver's QP")
	c.Flags().BoolVar(&f.data, "data", false, "also capture the packets of --flow")
	c.Flags().BoolVar(&f.trace, "trace", false, "also capture the packets of --flow, with what each stage decided about them")
	c.Flags().UintVar(&f.rate, "rate", 1000, fmt.Sprintf("packets a second, at most %d", api.MostPackets))
	wordFlag(c, &f.drops, "drops", "", "capture frames that are dropped for this reason", counters.ReasonNames()...)
	f.filter.add(c)
	for _, filter := range []string{"data", "trace", "port", "kind", "outcome", "source", "destination"} {
		c.MarkFlagsMutuallyExclusive("drops", filter)
	}
	for _, filter := range []string{"source", "destination"} {
		c.MarkFlagsMutuallyExclusive("flow", filter)
	}
	return f.ofGateway(c)
}

func (f *captureFlags) capture(c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return err
	}
	f.flow.choose(&f.filter)
	return f.ask(c, func(ctx context.Context, client *api.Client) error { return f.write(ctx, c, client) })
}

// check finds mistakes before the gateway is asked.
func (f *captureFlags) check(c *cobra.Command) error {
	switch {
	case (f.data || f.trace) && !c.Flags().Changed("flow"):
		return errors.New("--data and --trace need a flow; expected --flow SRC,DST[,QP]")
	case c.Flags().Changed("rate") && !f.packets():
		return errors.New("--rate is that of packets; expected --data, --trace or --drops, too")
	case f.rate < 1 || f.rate > api.MostPackets:
		return fmt.Errorf("--rate is %d, expected 1 to %d packets a second", f.rate, api.MostPackets)
	case f.file == "":
		return errors.New("no file to write to; expected --write FILE, or --write - for standard output")
	case f.filter.values().Get("outcome") == "suppressed":
		return errors.New("--outcome is suppressed, expected sent or observed: a suppressed notification has no frame; cnpgate show notifications prints why it was not sent")
	case f.file == "-" && isTerminal(c.OutOrStdout()):
		return errors.New("--write - would write pcapng to a terminal; expected a pipe or a file")
	case f.duration < 0:
		return fmt.Errorf("--duration is %v, expected more than 0", f.duration)
	}
	return nil
}

// open makes the file. It comes after the gateway's first answer: a capture of before stays where there is none.
func (f *captureFlags) open(ctx context.Context, c *cobra.Command) (to io.Writer, finish func() error, err error) {
	if f.file == "-" {
		return c.OutOrStdout(), func() error { return nil }, nil
	}
	if err := ownLink(f.file); err != nil {
		return nil, nil, fmt.Errorf("--write: %w", err)
	}
	file, err := opened(ctx, f.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

var errEnough = errors.New("as many packets as were asked for")

// capturing is a capture under way, of one stream or two.
type capturing struct {
	sync.Mutex
	out    *capture.Writer // nil before the first stream has begun
	finish func() error
	count  uint64 // of frames after which it ends; 0: none
}

// record counts losses, or writes what a stream has, and ends the capture after count frames.
func (c *capturing) record(lost uint64, write func() error) error {
	c.Lock()
	defer c.Unlock()
	if c.out.Lost(lost); lost > 0 {
		return nil
	}
	if c.count > 0 && c.out.Written() == c.count {
		return errEnough
	}
	if err := write(); err != nil {
		return err
	}
	if c.count > 0 && c.out.Written() == c.count {
		return errEnough
	}
	return nil
}

// write captures until the context ends, and always finishes the file.
func (f *captureFlags) write(ctx context.Context, c *cobra.Command, client *api.Client) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	w := &capturing{count: f.count}
	begun := func() error {
		to, whenDone, err := f.open(ctx, c)
		if err != nil {
			return err
		}
		out, err := capture.NewWriter(to, "cnpgate "+describe())
		if err != nil {
			return errors.Join(err, whenDone())
		}
		w.out, w.finish = out, whenDone
		if f.duration > 0 {
			time.AfterFunc(f.duration, end)
		}
		fmt.Fprintln(c.ErrOrStderr(), "capturing "+f.what()+"; Ctrl-C ends it")
		return nil
	}
	err := f.streams(ctx, client, w, begun)
	if errors.Is(err, errEnough) {
		err = nil
	}
	if w.out == nil {
		return err
	}
	err = errors.Join(err, w.out.End(), w.finish())
	why := ""
	if f.packets() && w.out.Losses() > 0 {
		why = ", beyond --rate or too fast for the reader"
	}
	fmt.Fprintf(c.ErrOrStderr(), "%d %s captured, %d lost%s\n", w.out.Written(), f.what(), w.out.Losses(), why)
	return err
}

// what is captured, in words.
func (f *captureFlags) what() string {
	switch {
	case f.drops != "":
		return "dropped frames"
	case f.packets():
		return "notifications and packets"
	}
	return "notifications"
}

// streams reads the notifications and, if they are wanted, the packets of the flow, until either ends.
func (f *captureFlags) streams(ctx context.Context, client *api.Client, w *capturing, begun func() error) error {
	notifications := func(ctx context.Context, begun func() error) error {
		return api.Stream(ctx, client, api.Path(api.StreamPath, f.filter.values()), begun, func(s *api.Streamed) error {
			return w.record(s.Lost, func() error { return w.out.Write(s.Notification) })
		})
	}
	if !f.packets() {
		return notifications(ctx, begun)
	}
	packets := func(begun func() error) error {
		return api.Stream(ctx, client, api.Path(api.PacketsPath, f.flow.packets(f.drops, f.trace, f.rate)), begun, func(s *api.StreamedPacket) error {
			return w.record(s.Lost, func() error { return w.out.WritePacket(s.Packet) })
		})
	}
	if f.drops != "" {
		return packets(begun)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	both := func() error { // the packets' stream has begun
		ready := make(chan error, 1)
		go func() {
			defer end()
			ended <- notifications(ctx, func() error {
				err := begun()
				ready <- err
				return err
			})
		}()
		select {
		case err := <-ready:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	started := false
	err := packets(func() error {
		started = true
		return both()
	})
	if !started {
		return err
	}
	end()
	other := <-ended
	if errors.Is(err, context.Canceled) || errors.Is(err, other) {
		err = nil // the other stream has the reason
	}
	return errors.Join(err, other)
}
