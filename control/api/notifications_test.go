package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/cnpgen"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/control/report"
	"github.com/cnpgate/cnpgate/dataplane/notify"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// notifies makes a gateway notify the senders of 10.1.0.0/16 of each packet.
func (g *gate) notifies(t *testing.T) {
	t.Helper()
	p := testkit.DefaultPolicy(2)
	p.QPMap = g.Plane.Policy().QPMap
	p.Ports[1].Thresholds = congestion.Thresholds{KMin: 0, KMax: 1}
	p.Who = &congestion.Policy{
		Enabled: [packet.SentNotifications]bool{packet.LongHaulCNP: true, packet.StandardCNP: true}, HasIPv4: true,
		Endpoints: prefix.New([]prefix.Entry[congestion.Preference]{
			{Prefix: netip.MustParsePrefix("10.1.0.1/32"), Value: congestion.Prefer(packet.LongHaulCNP)},
			{Prefix: netip.MustParsePrefix("10.1.0.2/32"), Value: congestion.Prefer(packet.StandardCNP)},
		}),
	}
	p.Build = cnpgen.Gateway{IPv4: packet.AddrFrom(netip.MustParseAddr("192.0.2.1")), HasIPv4: true, Code: packet.DefaultCodePoints}
	if err := g.Plane.SetPolicy(p); err != nil {
		t.Fatal(err)
	}
}

var (
	longHaulData = testkit.RoCE{Src: "10.1.0.1", Dst: "10.9.0.9", DestQP: 100}
	standardData = testkit.RoCE{Src: "10.1.0.2", Dst: "10.9.0.9", DestQP: 7, SourceQP: 8, Opcode: packet.UDSendOnly}
	noEndpoint   = testkit.RoCE{Src: "10.1.0.3", Dst: "10.9.0.9", DestQP: 9}
)

func TestNotifications(t *testing.T) {
	g := newGate(t, 2)
	g.notifies(t)
	g.see(t, 0, 0, longHaulData, longHaulData, noEndpoint)
	g.Advance(1000)
	g.see(t, 1, 0, standardData)
	for _, c := range []struct {
		query string
		want  string // kind or reason of each, in order
	}{
		{"", "long-haul-cnp long-haul-cnp standard-cnp"},
		{"?port=wan", "long-haul-cnp long-haul-cnp standard-cnp"},
		{"?port=dc&outcome=sent", "long-haul-cnp long-haul-cnp standard-cnp"},
		{"?outcome=observed", ""},
		{"?outcome=suppressed", "no-endpoint"},
		{"?outcome=suppressed&source_ip=10.1.0.1", ""},
		{"?kind=standard-cnp", "standard-cnp"},
		{"?kind=ppfc", ""},
		{"?source_ip=10.1.0.1", "long-haul-cnp long-haul-cnp"},
		{"?source_ip=10.1.0.0/16&destination_ip=10.9.0.9", "long-haul-cnp long-haul-cnp standard-cnp"},
		{"?destination_ip=10.9.0.0/24&destination_qp=7", "standard-cnp"},
		{"?source_qp=50", "long-haul-cnp long-haul-cnp"},
		{"?limit=2", "long-haul-cnp standard-cnp"},
		{"?limit=1", "standard-cnp"},
	} {
		status, _, text := g.ask(t, http.MethodGet, NotificationsPath+c.query, "")
		var a Notifications
		if err := json.Unmarshal([]byte(text), &a); err != nil || status != http.StatusOK {
			t.Fatalf("%s: status %d, %v: %s", c.query, status, err, text)
		}
		var got []string
		for _, n := range a.Notifications {
			got = append(got, n.Kind+n.Reason)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, expected %s", c.query, got, c.want)
		}
	}
	for query, want := range map[string]string{
		"?port=lan": `port is \"lan\"; expected dc, wan`, "?kind=cnp": "expected fast-cnp, long-haul-cnp", "?limit=0": "expected a number from 1 to 4096",
		"?limit=4097": "from 1 to 4096", "?frames=7": "expected true or false", "?outcome=lost": "expected sent, observed, suppressed",
		"?source_ip=x": "expected an address or a prefix", "?source_qp=x": "expected a QP", "?qp_state=x": "no parameter",
	} {
		g.want(t, http.MethodGet, NotificationsPath+query, "", 400, want)
	}
	g.want(t, http.MethodGet, StreamPath+"?limit=1", "", 400, "no parameter")
}

// TestNotificationSaysWhy: the members of one notification, and what a capture would say of it.
func TestNotificationSaysWhy(t *testing.T) {
	g := newGate(t, 1)
	g.notifies(t)
	g.see(t, 0, 0, longHaulData)
	all, err := Get[Notifications](t.Context(), NewClient(g.path), Path(NotificationsPath, url.Values{"frames": {"true"}}))
	if err != nil || len(all.Notifications) != 1 {
		t.Fatalf("%+v, %v", all.Notifications, err)
	}
	n := all.Notifications[0]
	if n.SourceQP == nil || *n.SourceQP != 50 || *n.QPEvidence != "static" || n.Trigger != "depth" || n.Threshold != 1 || n.DepthBytes != 500 ||
		n.FlowQueued != 500 || n.FlowBytes != 500 || n.Action != "pause" || n.Port != "wan" || n.SentBy != "dc" || n.Length != len(n.Frame) {
		t.Errorf("%+v", n)
	}
	for _, part := range []string{"long-haul-cnp pause", "queue wan/" + n.Class + " holds 500B", "senders are notified above 1B", "the flow has 500B in it",
		"Flow 10.1.0.1 to 10.9.0.9, destination QP 100, source QP 50 (evidence: static)", "Congestion Level 255"} {
		if !strings.Contains(n.Comment(), part) {
			t.Errorf("the comment lacks %q: %s", part, n.Comment())
		}
	}
}

// TestNotificationSaysWhyRaised: a raised level has its cause.
func TestNotificationSaysWhyRaised(t *testing.T) {
	g := newGate(t, 1)
	for raised, want := range map[bool]string{false: "notified above 2MB", true: "notified above 2MB; level raised, as the queue has grown since an earlier request"} {
		r := notify.NotificationRecord{Message: notify.Message{Out: 1, Cause: congestion.ByDepth, Raised: raised}}
		if n := report.MakeNotification(g.config, 0, &r, false); !strings.HasSuffix(n.Why, want) || n.Raised != raised {
			t.Errorf("%+v, want %s", n, want)
		}
	}
}

// TestNotificationNamesTheProxy: where the proxy was notified in place of the sender, the notification says which, and its frame is whole.
func TestNotificationNamesTheProxy(t *testing.T) {
	g := newGate(t, 1)
	g.notifies(t)
	p := *g.Plane.Policy()
	who := *p.Who
	who.Enabled[packet.ProxyNotification] = true
	p.Who, p.Proxies = &who, senders(t, "bgp", 1<<17) // 10.0.0.0/32 to 10.1.255.255/32, behind 192.0.2.9
	if err := g.Plane.SetPolicy(&p); err != nil {
		t.Fatal(err)
	}
	g.see(t, 0, 0, longHaulData)
	all, err := Get[Notifications](t.Context(), NewClient(g.path), Path(NotificationsPath, url.Values{"frames": {"true"}, "kind": {"proxy-notification"}}))
	if err != nil || len(all.Notifications) != 1 {
		t.Fatalf("%+v, %v", all.Notifications, err)
	}
	const whole = 14 + 20 + 8 + 16 + 486 // the data packet's 500 bytes, without its Ethernet header
	if n := all.Notifications[0]; n.Proxy != "192.0.2.9" || n.SourceIP.String() != "10.1.0.1" || n.Length != whole || len(n.Frame) != whole ||
		!strings.Contains(n.Comment(), "; to the sender's proxy 192.0.2.9. Flow 10.1.0.1 to 10.9.0.9") {
		t.Errorf("%+v\n%s", n, n.Comment())
	}
	g.want(t, http.MethodGet, NotificationsPath+"?limit=1", "", 200, `"proxy":"192.0.2.9"`)
}

// TestStream: what is sent after the stream began comes, in order; what was overwritten before it could be read is counted; the stream ends with the
// client or with the gateway.
func TestStream(t *testing.T) {
	if ontime.Again(t) { // the server gives a client that doesn't read ten seconds
		return
	}
	g := newGate(t, 1)
	g.notifies(t)
	g.see(t, 0, 0, longHaulData)
	const many = 5000 // more than a worker keeps
	enough := errors.New("enough")
	var got []report.Notification
	lost, client := uint64(0), NewClient(g.path)
	send := func() error {
		for range many {
			g.see(t, 0, 0, longHaulData)
		}
		g.see(t, 0, 0, standardData)
		return nil
	}
	err := Stream(t.Context(), client, StreamPath, send, func(s *Streamed) error {
		lost += s.Lost
		if s.Notification == nil {
			return nil
		}
		got = append(got, *s.Notification)
		if s.Notification.Kind == "standard-cnp" {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || uint64(len(got))+lost != many+1 {
		t.Fatalf("%d notifications, %d lost, of %d: %v", len(got), lost, many+1, err)
	}
	for i := range got {
		if got[i].Number == 0 || i > 0 && got[i].Number <= got[i-1].Number || len(got[i].Frame) == 0 {
			t.Errorf("notification %d is number %d with a frame of %d bytes", i, got[i].Number, len(got[i].Frame))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := Stream[Streamed](ctx, client, StreamPath, func() error { stop(); return nil }, nil); err != nil {
		t.Errorf("after the client's end: %v", err)
	}
	if err := Stream[Streamed](t.Context(), client, StreamPath, func() error { g.cancel(); return nil }, nil); err != nil {
		t.Errorf("after the gateway's end: %v", err)
	}
}

// TestStreamLoses: what a worker has overwritten is counted in the stream, ahead of what follows.
func TestStreamLoses(t *testing.T) {
	g := newGate(t, 1)
	g.notifies(t)
	const many, keeps = 1500, 1024
	for range many {
		g.see(t, 0, 0, longHaulData)
	}
	var text strings.Builder
	next, err := g.server.history.streamWorker(json.NewEncoder(&text), g.config, 0, 7, &notificationFilter{})
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	var first Streamed
	if e := json.Unmarshal([]byte(lines[0]), &first); e != nil || err != nil || next != many || len(lines) != 1+keeps || first.Lost != many-keeps-7 {
		t.Errorf("%d lines, %d lost, then from %d: %v, %v", len(lines), first.Lost, next, err, e)
	}
}
