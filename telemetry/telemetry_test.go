package telemetry_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cnpgate/cnpgate/telemetry"
)

// TestCatalogue: each metric follows the conventions of Prometheus and of this catalogue.
func TestCatalogue(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, m := range telemetry.All() {
		words := strings.Split(m.Name, "_")
		for _, c := range []struct {
			ok   bool
			rule string
		}{
			{snake.MatchString(m.Name), "the name is snake case"},
			{!seen[m.Name], "the name is the only one of its kind"},
			{(m.Kind == telemetry.Counter) == strings.HasSuffix(m.Name, "_total"), "a counter's name ends in _total, and no gauge's does"},
			{m.Unit == telemetry.Events || slices.Contains(words, string(m.Unit)), "the unit is a word of the name"},
			{m.Unit != telemetry.Events || !slices.Contains(words, "packets") && !slices.Contains(words, "bytes"), "a unit in the name is the metric's"},
			{m.Side == telemetry.None || m.Unit == telemetry.Packets, "the accounting identity is about packets"},
			{m.Side == telemetry.None || m.Scope == telemetry.Port, "the accounting identity is about what workers counted at ports"},
			{m.Label == "" || snake.MatchString(m.Label) && m.Label != "port" && m.Label != "class", "the label is snake case, and not one of the scope's"},
			{strings.HasSuffix(m.Help, ".") && strings.Count(m.Help, ". ") == 0 && strings.ToUpper(m.Help[:1]) == m.Help[:1], "the help is one sentence"},
			{m.Scope != telemetry.Device || strings.HasPrefix(m.Name, "device_"), "what a device counts says so"},
		} {
			if !c.ok {
				t.Errorf("%+v: expected that %s", *m, c.rule)
			}
		}
		seen[m.Name] = true
	}
}

// TestIdentity: the metrics of the accounting identity.
func TestIdentity(t *testing.T) {
	sides := map[telemetry.Side][]string{}
	for _, m := range telemetry.All() {
		sides[m.Side] = append(sides[m.Side], m.Name)
	}
	delete(sides, telemetry.None)
	want := map[telemetry.Side][]string{
		telemetry.In:  {"received_packets_total"},
		telemetry.Out: {"forwarded_packets_total", "dropped_packets_total", "consumed_packets_total", "queued_packets"},
	}
	if !reflect.DeepEqual(sides, want) {
		t.Errorf("the sides of the identity are %v, want %v", sides, want)
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		metric *telemetry.Metric
		want   []string
	}{
		{telemetry.FlowsKnown, nil},
		{telemetry.QPEvidence, []string{"qp_evidence"}},
		{telemetry.ReceivedBytes, []string{"port"}},
		{telemetry.DroppedPackets, []string{"port", "reason"}},
		{telemetry.DeviceMissed, []string{"port"}},
		{telemetry.QueueDepthBytes, []string{"port", "class"}},
	} {
		if got := c.metric.Labels(); !slices.Equal(got, c.want) {
			t.Errorf("%s has the labels %q, want %q", c.metric.Name, got, c.want)
		}
	}
}

// sample has frames that ended in every way; 1 more came in.
func sample() telemetry.Values {
	v := telemetry.Values{}
	v.Add(telemetry.ReceivedPackets, "", 15)
	v.Add(telemetry.ReceivedPackets, "", 5) // another port's
	v.Add(telemetry.ForwardedPackets, "", 9)
	v.Add(telemetry.DroppedPackets, "queue-full-bytes", 3)
	v.Add(telemetry.DroppedPackets, "border-in", 2)
	v.Add(telemetry.DroppedPackets, "shutdown", 0)
	v.Add(telemetry.ConsumedPackets, "mac-control", 1)
	v.Add(telemetry.QueuedPackets, "", 4)
	v.Add(telemetry.ReceivedBytes, "", 1000)
	return v
}

func TestCheck(t *testing.T) {
	v := sample()
	if n := v.Unaccounted(); n != 1 {
		t.Errorf("%d frames unaccounted for, want 1", n)
	}
	const want = "1 frames are not accounted for, expected received_packets_total 20 = forwarded_packets_total 9 + dropped_packets_total 5 + " +
		"consumed_packets_total 1 + queued_packets 4: a bug in cnpgate; please report it"
	if err := v.Check(); err == nil || err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
	v.Add(telemetry.ConsumedPackets, "a reason that is not known yet", 1)
	if err := v.Check(); err != nil {
		t.Error(err)
	}
	v.Add(telemetry.QueuedPackets, "", 2)
	if n := v.Unaccounted(); n != -2 {
		t.Errorf("%d frames unaccounted for, want -2: more ended than came in", n)
	}
}

// TestEach: the log has what isn't 0, in a fixed order.
func TestEach(t *testing.T) {
	var got []string
	sample().Each(func(name string, _ uint64) { got = append(got, name) })
	want := []string{"received_packets_total", "received_bytes_total", "forwarded_packets_total", "dropped_packets_total{border-in}",
		"dropped_packets_total{queue-full-bytes}", "consumed_packets_total{mac-control}", "queued_packets"}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// TestJSON: zeros are written, of labels as well, and what is written is read back.
func TestJSON(t *testing.T) {
	b, err := json.Marshal(sample())
	const want = `{"consumed_packets_total":{"mac-control":1},"dropped_packets_total":{"border-in":2,"queue-full-bytes":3,"shutdown":0},` +
		`"forwarded_packets_total":9,"queued_packets":4,"received_bytes_total":1000,"received_packets_total":20}`
	if err != nil || string(b) != want {
		t.Errorf("%v\n%s, want\n%s", err, b, want)
	}
	if err := json.Unmarshal([]byte(`{"flows": "many"}`), &telemetry.Values{}); err == nil {
		t.Error("a text is read as a number")
	}
	rapid.Check(t, func(t *rapid.T) {
		v := telemetry.Values{}
		for range rapid.IntRange(0, 20).Draw(t, "values") {
			m, label := rapid.SampledFrom(telemetry.All()).Draw(t, "metric"), ""
			if m.Label != "" {
				label = rapid.StringMatching(`[a-z-]{1,3}`).Draw(t, "label")
			}
			v.Add(m, label, rapid.Uint64().Draw(t, "value"))
		}
		b, err := json.Marshal(v)
		back := telemetry.Values{}
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if err != nil || !reflect.DeepEqual(v, back) {
			t.Fatalf("%v: %v became %s, then %v", err, v, b, back)
		}
	})
}

// TestMerge: values are added by metric and label, and what is merged stays as it is.
func TestMerge(t *testing.T) {
	a, b := telemetry.Values{}, telemetry.Values{}
	a.Add(telemetry.ReceivedPackets, "", 1)
	a.Add(telemetry.DroppedPackets, "x", 2)
	b.Add(telemetry.ReceivedPackets, "", 10)
	b.Add(telemetry.DroppedPackets, "x", 20)
	b.Add(telemetry.DroppedPackets, "y", 30)
	b.Add(telemetry.ForwardedPackets, "", 40)
	sum := telemetry.Values{}
	sum.Merge(a)
	sum.Merge(b)
	want := telemetry.Values{}
	want.Add(telemetry.ReceivedPackets, "", 11)
	want.Add(telemetry.DroppedPackets, "x", 22)
	want.Add(telemetry.DroppedPackets, "y", 30)
	want.Add(telemetry.ForwardedPackets, "", 40)
	if !reflect.DeepEqual(sum, want) {
		t.Errorf("%v, want %v", sum, want)
	}
	if a.Sum(telemetry.DroppedPackets) != 2 || b.Sum(telemetry.DroppedPackets) != 50 {
		t.Errorf("the values became %v and %v", a, b)
	}
}
