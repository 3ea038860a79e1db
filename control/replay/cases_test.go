package replay_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/health"
)

// answer is what a capture must be answered with.
type answer struct {
	verdicts []string
	note     string
	causes   map[string]uint64 // packets sent again; nil: none
	lost     uint64            // behind here
	says     string            // in a verdict, or the conclusion
	warning  string            // about the file
}

// cases are what operators reported, rebuilt as small captures.
var cases = map[string]answer{
	// Directions in different VLANs; all QPs on one UDP port, from PSN 0.
	"vlan_one_way.pcap":        {verdicts: []string{health.LossDownstream}, causes: byNAK(25), lost: 2},
	"vlan_routed.pcap":         {verdicts: []string{health.LossDownstream}, causes: byNAK(25), lost: 2},
	"nccl_psn0_oneport.pcap":   {verdicts: []string{health.LossDownstream}, causes: byNAK(160), lost: 4},
	"one_qp_psn0_oneport.pcap": {verdicts: []string{health.LossDownstream}, causes: byNAK(80), lost: 2},
	// A job restarts with the same QPs.
	"cm_restart_same.pcap":       {},
	"restart_0_0.pcap":           {},
	"restart_345678_343350.pcap": {},
	"restart_345678_3479a0.pcap": {},
	// Directions recorded by different clocks or queues; copies from both sides of a router; frames that the capture missed; adaptive routing.
	"ack_early_1000ns.pcap":   {note: health.NoteClocks},
	"skew_12_15_inc.pcap":     {note: health.NoteClocks},
	"skew_20_40_inc.pcap":     {note: health.NoteClocks},
	"twice_v4zero_300us.pcap": {verdicts: []string{health.Duplication}, says: "360 packets (50 %)"},
	"twice_v6_2us.pcap":       {verdicts: []string{health.Duplication}, says: "360 packets (50 %)"},
	"twice_v6_300us.pcap":     {verdicts: []string{health.Duplication}, says: "360 packets (50 %)"},
	"capdrop_10_w512.pcap":    {verdicts: []string{health.Incomplete}},
	"capdrop_30_w512.pcap":    {verdicts: []string{health.Incomplete}},
	"capdrop_bursts.pcap":     {verdicts: []string{health.Incomplete}},
	"ar_ooo_inc.pcap":         {note: health.NoteReordered},
	"ar_ooo_rand.pcap":        {note: health.NoteReordered},
	"ar_read.pcap":            {note: health.NoteReordered},
	// Congestion: CE without CNPs, CNPs without effect.
	"ce_no_cnp.pcap":      {verdicts: []string{health.CENoCNP}, says: "614 of 1500 packets"},
	"cnp_other_src.pcap":  {verdicts: []string{health.IgnoresCNP}, says: "1001 CNPs"},
	"f_ignores_cnps.pcap": {verdicts: []string{health.IgnoresCNP}, says: "100 CNPs"},
	// Time-outs shorter than the round trip.
	"read_adaptive40.pcap": {verdicts: []string{health.ShortTimeOut}, causes: map[string]uint64{"spurious": 480}},
	"e_spur64.pcap":        {verdicts: []string{health.ShortTimeOut}, causes: map[string]uint64{"spurious": 12800}, says: "every 10 ms"},
	"d_spur4.pcap":         {verdicts: []string{health.ShortTimeOut}, causes: map[string]uint64{"spurious": 800}},
	"e_read256.pcap":       {verdicts: []string{health.ShortTimeOut}, causes: map[string]uint64{"spurious": 20560}, says: "first after 2 ms, then at growing intervals of up to 16 ms, at an RTT of 40 ms"},
	"stall500.pcap":        {verdicts: []string{health.Unexplained}, causes: map[string]uint64{"spurious": 168}, says: "the responder or the path stood still"},
	"loop_ttl.pcap":        {verdicts: []string{health.Duplication, health.NoAnswer}, causes: map[string]uint64{"time-out": 7}, says: "21 times on average"},
	// Peers that refuse, or don't answer.
	"access_error.pcap":        {verdicts: []string{health.Refused}},
	"blackhole_4096.pcap":      {verdicts: []string{health.BlackHole}, causes: map[string]uint64{"time-out": 28}},
	"blackhole_nak.pcap":       {verdicts: []string{health.BlackHole}, causes: byNAK(14), lost: 8},
	"dead_peer.pcap":           {verdicts: []string{health.NoAnswer}, causes: map[string]uint64{"time-out": 7}},
	"mtu_mismatch.pcap":        {verdicts: []string{health.Refused}},
	"rnr_exceeded.pcap":        {verdicts: []string{health.NotReady}, causes: map[string]uint64{"rnr-nak": 6}},
	"f_retry_exceeded.pcap":    {verdicts: []string{health.NoAnswer}, causes: map[string]uint64{"time-out": 7}, says: "retry count 7 exceeded, time-out 14"},
	"rnr_655.pcap":             {verdicts: []string{health.NotReady}, causes: map[string]uint64{"rnr-nak": 3}, says: "wait for up to 655 ms"},
	"icmp_port.pcap":           {verdicts: []string{health.NoAnswer, health.Unreachable}, causes: map[string]uint64{"time-out": 7}},
	"icmp_frag.pcap":           {verdicts: []string{health.Unreachable, health.BlackHole}, causes: map[string]uint64{"time-out": 28}, says: "an MTU of 1500"},
	"cm_rej.pcap":              {verdicts: []string{health.Refused}, says: "port 4420 were rejected: nobody listens"},
	"cm_rej_rep.pcap":          {verdicts: []string{health.Refused}, says: "3 replies"},
	"cm_rep_lost.pcap":         {verdicts: []string{health.AckLoss}, says: "4 times more after its reply"},
	"many_qps_one_port.pcap":   {verdicts: []string{health.LossDownstream}, causes: byNAK(24), lost: 2},
	"read_tail_e810.pcap":      {verdicts: []string{health.LossUpstream}, causes: map[string]uint64{"time-out": 5}, says: "5 packets (0.366 %)"},
	"cm_cut.pcap":              {verdicts: []string{health.NoAnswer}, says: "sent 6 times without an answer"}, // tcpdump -s 192
	"after_dreq.pcap":          {},
	"read_tail_whole.pcap":     {verdicts: []string{health.LossUpstream}, causes: map[string]uint64{"time-out": 80}, says: "lost between 10.20.1.21 and here"},
	"one_refused.pcap":         {verdicts: []string{health.Refused}, says: "1 of 16 requests"},
	"nvmf_read9.pcap":          {verdicts: []string{health.Refused}, says: "to a READ or atomic once"},
	"stale_conn.pcap":          {verdicts: []string{health.NoAnswer, health.Refused}, causes: map[string]uint64{"time-out": 280}, says: "to none of 8 transmissions"},
	"lacp_ack_other_port.pcap": {verdicts: []string{health.AckLoss}, causes: map[string]uint64{"time-out": 84}, says: "after 7 time-outs in a row"},
	"timeout0.pcap":            {says: "1 connections end with a request that was never answered"},
	"read_hole.pcap":           {verdicts: []string{health.BlackHole}, causes: map[string]uint64{"time-out": 7}, says: "with 2048 bytes"},
	"cm_no_answer.pcap":        {verdicts: []string{health.NoAnswer}, says: "sent 6 times"},
	// A path that fails, and another one with a hop more; both ends on one host; ICRCs that the NIC writes behind the capture.
	"reroute_ttl.pcap": {verdicts: []string{health.LossDownstream}, causes: map[string]uint64{"time-out": 12}, lost: 3},
	"same_host.pcap":   {verdicts: []string{health.LossDownstream}, causes: byNAK(24), lost: 2},
	"icrc_tx.pcap":     {verdicts: []string{health.LossDownstream}, causes: byNAK(24), lost: 2},
	// Selective repeat, PSNs that wrap, packets on many ports, and other operations.
	"atomics.pcap":       {},
	"failover.pcap":      {},
	"flush_awrite.pcap":  {},
	"selrep_before.pcap": {verdicts: []string{health.LossUpstream}, causes: byNAK(3)},
	"selrep_behind.pcap": {verdicts: []string{health.LossDownstream}, causes: byNAK(3), lost: 3},
	"spray_ports.pcap":   lossy2(""),
	"incast16.pcap":      {verdicts: []string{health.LossDownstream}, causes: byNAK(85), lost: 17, says: "10.1.0.5 -> 10.2.0.1: 2 times"},
	"uc_loss.pcap":       {verdicts: []string{health.LossUpstream}},
	"wrap.pcap":          {verdicts: []string{health.LossDownstream}, causes: byNAK(132), lost: 3},
	// Files.
	"clock_step_-3600.pcap":    lossy2("earlier timestamps"),
	"clock_step_3600.pcap":     lossy2("jumps ahead"),
	"ring_order.pcap":          {verdicts: []string{health.LossDownstream}, causes: byNAK(24), lost: 2, warning: "it was sorted by time"},
	"crop_mirror.pcap":         {verdicts: []string{health.LossDownstream}, causes: byNAK(24), lost: 2},
	"same_time.pcap":           lossy2("same timestamp"),
	"ng_any_and_eth.pcapng":    lossy2(""),
	"ng_eth_and_usbmon.pcapng": lossy2(""),
	"cat_two.pcap":             {verdicts: []string{health.LossDownstream}, causes: byNAK(176), lost: 4, warning: "1 more files"},
	"zeros_inside.pcap":        {verdicts: []string{health.LossDownstream}, causes: byNAK(88), lost: 2, warning: "damaged places: 1"},
	"dlt_erf.pcap":             lossy2(""),
	"ipv4_228.pcap":            lossy2(""),
	"nflog.pcap":               lossy2(""),
	"nflog_be.pcap":            lossy2(""),
	"null0.pcap":               lossy2(""),
	"raw12.pcap":               lossy2(""),
	"cut_tail.pcap":            lossy2("cut short"),
	"fcs.pcap":                 lossy2(""),
	"nano_be.pcap":             lossy2(""),
	"ng_be.pcapng":             lossy2(""),
	"ng_us_ns.pcapng":          lossy2("earlier timestamps"),
	"raw.pcap":                 lossy2(""),
	"sll.pcap":                 lossy2(""),
	"sll2.pcap":                lossy2(""),
	"sll2_vlan.pcap":           lossy2(""),
	// Clocks: of a NIC and of its host, set back by a second, and nanoseconds in a file of microseconds. Files that overlap; fragments of a mirror.
	"tai37.pcap":       lossy2Of(54, "two clocks, 37s apart"),
	"leap1s.pcap":      lossy2Of(15, "the clock was set back"),
	"ns_in_us.pcap":    lossy2Of(54, "in nanoseconds"),
	"erf_color20.pcap": lossy2Of(54, ""),
	"erspan_frag.pcap": lossy2Of(54, ""),
	"overlap_cat.pcap": {verdicts: []string{health.LossDownstream}, note: health.NoteCopies, causes: byNAK(54), lost: 2, warning: "1 more files"},
	// Packets with a RETH are too long; two hosts with one address; a longer path; a peer that is silent while a long time-out ends three times.
	"mtu_reth.pcap": {verdicts: []string{health.BlackHole}, causes: map[string]uint64{"nak-sequence-error": 4, "time-out": 16}, lost: 1, says: "with 16 bytes of headers fewer"},
	// Hosts with one address, of which one gets all answers.
	"same_ip.pcap": {verdicts: []string{health.Unexplained}, note: health.NoteMACs, causes: map[string]uint64{"unknown": 896}},
	// IP headers without a length, as a sending host has them.
	"ip_len0.pcap":    lossy2Of(28, ""),
	"dup_ip.pcap":     {verdicts: []string{health.Unreachable}, note: health.NoteMACs, causes: map[string]uint64{"time-out": 896}, lost: 4, says: "896 packets"},
	"rtt_step.pcap":   {verdicts: []string{health.ShortTimeOut}, causes: map[string]uint64{"spurious": 200}, says: "at an RTT of 30 ms"},
	"retry3of22.pcap": {verdicts: []string{health.NoAnswer}, causes: map[string]uint64{"time-out": 192}, says: "none of 4 transmissions"},
	"sll2_twice.pcap": {verdicts: []string{health.LossDownstream}, note: health.NoteCopies, causes: byNAK(88), lost: 2},
	// All is lost for a while, or stands still; a requester that goes back one packet at a time; paths of different lengths; a capture that begins before a NAK for
	// what has passed; answers to atomics that aren't heard; packets that are flooded, too.
	"all_lost.pcap":       {verdicts: []string{health.LossDownstream}, causes: map[string]uint64{"time-out": 640}, lost: 2},
	"stood_still.pcap":    {verdicts: []string{health.Unexplained}, causes: map[string]uint64{"spurious": 448}, says: "stood still"},
	"resend_one.pcap":     {verdicts: []string{health.LossDownstream}, causes: byNAK(300), lost: 2, says: "275 NAKs more"},
	"spray_ttl.pcap":      {verdicts: []string{health.LossDownstream}, causes: byNAK(158), lost: 3},
	"cut_begin.pcap":      {verdicts: []string{health.LossDownstream}, causes: byNAK(5876), lost: 1},
	"atomic_unheard.pcap": {verdicts: []string{health.NoAnswer, health.LossDownstream}, causes: map[string]uint64{"time-out": 462}, lost: 7, says: "none of 8 transmissions"},
	"flood_twice.pcap":    {verdicts: []string{health.Duplication}, says: "60 packets"},
	// A policer that drops the ends of bursts; CNPs without the tag that the data has, of one connection, or of one of two tenants; a capture that misses what was
	// lost, too; connections that are accepted late; data that isn't ECN-capable; pauses of another priority.
	"policer_tail.pcap":    {verdicts: []string{health.LossDownstream}, causes: map[string]uint64{"time-out": 192, "unknown": 64}, lost: 3},
	"cnp_untagged.pcap":    {verdicts: []string{health.IgnoresCNP}, says: "60 CNPs"},
	"cnp_two_tenants.pcap": {},
	"missed_and_lost.pcap": {verdicts: []string{health.Incomplete, health.LossUpstream}, causes: byNAK(336), says: "; 5 packets (0.511 %) were missing"},
	"cm_late.pcap":         {note: health.NoteLate},
	"not_ect.pcap":         {verdicts: []string{health.LossDownstream}, causes: byNAK(100), lost: 2, says: "isn't ECN-capable"},
	"pfc_other.pcap":       {verdicts: []string{health.PFCPauses}, says: "priority 0, which no RDMA packet here has,"},
	"pfc_renewed.pcap":     {verdicts: []string{health.PFCPauses}, says: "for 3.6 ms of 19.2 ms"},
	// Ends that don't agree on PSNs; one of many alike connections whose peer is gone; DSCPs of which only some are lossless; a link that is down while a time-out
	// ends once or twice; a peer that is gone when a connection is released; a requester that fails within a message; a host's capture without its RDMA.
	"psn_behind.pcap":      {verdicts: []string{health.Unexplained}, causes: map[string]uint64{"unknown": 112}, says: "which the requester has never sent"},
	"one_of_64.pcap":       {verdicts: []string{health.NoAnswer}, causes: map[string]uint64{"unknown": 164}, says: "10.2.0.1 never answered"},
	"dscp_lossy.pcap":      {verdicts: []string{health.LossDownstream}, causes: byNAK(121), lost: 22, says: "it has DSCP 0, and what goes to 10.2.0.1 with DSCP 3 or 4 loses nothing"},
	"flap.pcap":            {verdicts: []string{health.LossDownstream}, causes: map[string]uint64{"time-out": 896}, lost: 8},
	"dreq_alone.pcap":      {verdicts: []string{health.NoAnswer}, says: "(DREQ) was sent 16 times"},
	"stops_in_middle.pcap": {says: "in the midst of a message"},
	"cm_only.pcap":         {says: "bypasses the host's kernel"},
	// Packets and the only answers are lost, and time-outs are short; a time-out ends while a NAK is on its way; a peer dies that wasn't ready, and has sent NAKs, too;
	// a requester with another path MTU; NAKs without their requests; who asks for a connection gives up and asks anew; a sender that marks all its packets CE.
	"crc_both_ways.pcap":       {verdicts: []string{health.LossDownstream}, causes: map[string]uint64{"nak-sequence-error": 42, "time-out": 40, "unknown": 1}, lost: 13},
	"time_out_before_nak.pcap": {verdicts: []string{health.LossDownstream}, causes: map[string]uint64{"nak-sequence-error": 131, "spurious": 13, "time-out": 64}, lost: 37},
	"rnr_dies.pcap":            {verdicts: []string{health.NoAnswer, health.NotReady}, causes: map[string]uint64{"rnr-nak": 102, "time-out": 384}, says: "none of 7 transmissions"},
	"read_mtu.pcap":            {verdicts: []string{health.MTUDiffers}, says: "a path MTU of 4096 bytes"},
	"naks_only.pcap":           {verdicts: []string{health.Unexplained}, says: "5 NAKs ask for"},
	"cm_new_ids.pcap":          {verdicts: []string{health.NoAnswer}, says: "7 requests for a connection"},
	"marked_by_sender.pcap":    {note: health.NoteAllMarked},
	// A mirror with a header of its own; nobody resolves a service of datagrams; a capture that begins when packets are sent again and again though they are acknowledged; a
	// NAK that is lost, too, so that the requester goes back to before what it acknowledges.
	"everflow22.pcap":   lossy2Of(28, ""),
	"sidr.pcap":         {verdicts: []string{health.NoAnswer}, says: "UDP port 20000 was sent 6 times"},
	"begins_stuck.pcap": {verdicts: []string{health.AckLoss}, causes: map[string]uint64{"time-out": 18}},
	"nak_lost_too.pcap": {verdicts: []string{health.AckLoss}, causes: map[string]uint64{"time-out": 128}},
}

func byNAK(n uint64) map[string]uint64 { return map[string]uint64{"nak-sequence-error": n} }

// lossy2 is the answer to the capture that most files hold: two packets are lost behind, and 88 are sent again.
func lossy2(warning string) answer { return lossy2Of(88, warning) }

// lossy2Of is the same of one in which so many are sent again.
func lossy2Of(again uint64, warning string) answer {
	return answer{verdicts: []string{health.LossDownstream}, causes: byNAK(again), lost: 2, warning: warning}
}

// TestCases: captures of what operators reported are answered rightly, and nothing else is said.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.zst")
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d files, want %d; %v", len(files), len(cases), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".zst")
		t.Run(name, func(t *testing.T) {
			want, ok := cases[name]
			if !ok {
				t.Fatal("no answer is known")
			}
			c, err := replay.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, err := diagnosed(c, replay.HealthOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want.check(t, r, strings.Join(c.Warnings, "\n"))
		})
	}
}

// TestPairsByRDMACM: 64 connections with the same PSNs at the same time on one UDP port are paired as RDMA-CM says.
func TestPairsByRDMACM(t *testing.T) {
	const each, theirs, ours, first, peer = 64, 3, 2, 0x800, 0x900
	r := healthOf(t, "testdata/cases/many_qps_one_port.pcap.zst")
	for _, c := range r.Connections {
		a, b := c.Ends[0].QP, c.Ends[1].QP
		if a > b {
			a, b = b, a
		}
		if c.PairedBy != "rdma-cm" || (a-first)*theirs != (b-peer)*ours {
			t.Errorf("QPs %#x and %#x are paired by %s", a, b, c.PairedBy)
		}
	}
	if len(r.Connections) != each {
		t.Errorf("%d connections, want %d", len(r.Connections), each)
	}
}

func (want *answer) check(t *testing.T, r *health.Report, warnings string) {
	t.Helper()
	var names []string
	text := r.Conclusion
	for _, v := range r.Verdicts {
		names = append(names, v.Name)
		text += "; " + v.Evidence
	}
	if !slices.Equal(names, want.verdicts) {
		t.Errorf("verdicts %+v, want %v", r.Verdicts, want.verdicts)
	}
	if !strings.Contains(text, want.says) {
		t.Errorf("it says %q, want %q", text, want.says)
	}
	hasNote := slices.ContainsFunc(r.Notes, func(n health.Note) bool { return n.Name == want.note })
	if (want.note != "") != hasNote || want.note == "" && len(r.Notes) > 0 {
		t.Errorf("notes %+v, want %q", r.Notes, want.note)
	}
	sum := uint64(0)
	for cause, a := range r.Summary.Causes {
		if sum += a.Packets; a.Packets != want.causes[cause] {
			t.Errorf("%d packets by %s, want %d", a.Packets, cause, want.causes[cause])
		}
	}
	if len(want.causes) == 0 && sum > 0 || len(want.causes) > 0 && sum == 0 {
		t.Errorf("sent again: %v, want %v", r.Summary.Causes, want.causes)
	}
	if r.Summary.LostDownstream != want.lost {
		t.Errorf("%d lost behind, want %d", r.Summary.LostDownstream, want.lost)
	}
	if healthy := len(want.verdicts) == 0 && want.says == ""; healthy != (r.Conclusion == "Nothing is wrong.") {
		t.Errorf("the conclusion is %q", r.Conclusion)
	}
	if !strings.Contains(warnings, want.warning) || want.warning == "" && warnings != "" {
		t.Errorf("warnings %q, want %q", warnings, want.warning)
	}
}

// TestCompressedOtherwise: the error for a file that can't be read names the program that can.
func TestCompressedOtherwise(t *testing.T) {
	for name, magic := range map[string]string{"xz -dc": "\xfd7zXZ\x00\x00\x04", "lz4 -dc": "\x04\x22\x4d\x18\x64\x40\xa7\x00"} {
		path := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(path, []byte(magic+strings.Repeat("x", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := replay.Open(path, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error is %v, want %q", err, name)
		}
	}
}
