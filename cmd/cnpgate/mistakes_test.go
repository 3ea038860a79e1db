package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakes: each answer to a mistake in a command line names the mistake and what was expected or meant. No command of these contacts a gateway: there
// is none, and the answer would be about its socket.
func TestMistakes(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "wrong.yaml", []byte("name: x\nlength: 1ms\n"))
	words := strings.Fields
	for _, c := range []struct {
		args []string
		want string // the first part of what standard error has after "cnpgate: "
	}{
		// Commands.
		{words("stauts"), `unknown command "stauts" for cnpgate; did you mean cnpgate status?`},
		{words("chekc gw.yaml"), `unknown command "chekc" for cnpgate; did you mean cnpgate check?`},
		{words("chekc --config gw.yaml"), `unknown command "chekc" for cnpgate; did you mean cnpgate check?`},
		{words("loglevel debug"), `unknown command "loglevel" for cnpgate; did you mean cnpgate set?`},
		{words("flows"), `unknown command "flows" for cnpgate; did you mean cnpgate show flows?`},
		{words("frobnicate"), `unknown command "frobnicate" for cnpgate; see cnpgate --help`},
		{words("show port"), `unknown command "port" for cnpgate show; did you mean cnpgate show ports?`},
		{words("show notification"), `unknown command "notification" for cnpgate show; did you mean cnpgate show notifications?`},
		{words("show flow --socket x"), `unknown command "flow" for cnpgate show; did you mean cnpgate show flows?`},
		{words("show status"), `unknown command "status" for cnpgate show; did you mean cnpgate status?`},
		{words("show"), "\"show\" needs a command after it; expected one of:\n  config "},
		{words("endpoint"), "\"endpoint\" needs a command after it; expected one of:\n  receive "},
		{words("endpoint sned"), `unknown command "sned" for cnpgate endpoint; did you mean cnpgate endpoint send?`},
		{words("help foo"), `unknown command "foo" for cnpgate; see cnpgate --help`},
		{words("help show prots"), `unknown command "prots" for cnpgate show; did you mean cnpgate show ports?`},
		{words("completion bsh"), "expected one shell: bash, fish or zsh"},
		// Arguments.
		{words("check"), "0 configuration files are given; expected one: cnpgate check FILE; see cnpgate check --help"},
		{words("run"), "0 configuration files are given; expected one: cnpgate run FILE; see cnpgate run --help"},
		{words("check gw.yaml gw.yaml"), "2 configuration files are given; expected one: cnpgate check FILE"},
		{words("check none.yaml"), "none.yaml: there is no such configuration file; check the path"},
		{words("run none.yaml"), "none.yaml: there is no such configuration file; check the path"},
		{words("show flows wan"), `unexpected argument "wan"; expected flags only; see cnpgate show flows --help`},
		{words("version 2"), `unexpected argument "2"; expected flags only; see cnpgate version --help`},
		{words("decode"), "0 captures are given, expected one: IN.pcap at the end of the command line; see cnpgate decode --help"},
		{words("replay -c gw.yaml in.pcap"), "missing: --fabric; expected with a value; see cnpgate replay --help"},
		{words("replay in.pcap"), "missing: --health, for what is wrong with the capture's RDMA, or --config and --fabric, "},
		{words("/tmp/sick.pcap.gz"), `unknown command "/tmp/sick.pcap.gz" for cnpgate; did you mean cnpgate replay --health /tmp/sick.pcap.gz?`},
		{words("diagnose sick.pcap"), `unknown command "diagnose" for cnpgate; did you mean cnpgate replay?`},
		{words("decode a.pcap b.pcap"), "2 captures are given, expected one; cat FILE ... | cnpgate decode ... - reads several as one; see cnpgate decode --help"},
		{words("web sick.pcapng"), "sick.pcapng is a capture, and not the result of a run; did you mean cnpgate replay --health --web sick.pcapng?"},
		{[]string{"sim", ""}, "the scenario's name is empty; expected a file, or a name that cnpgate sim --list shows"},
		{words("sim ."), "read .: is a directory; expected a scenario's file, or a name that cnpgate sim --list shows"},
		{words("replay --health --connections 0 in.pcap"), "--connections 0: expected 1 or more that are followed at a time"},
		{words("set log-level trace"), `log-level "trace" is not known; did you mean debug? Expected debug, info, warn or error`},
		{words("set log-level warning"), `log-level "warning" is not known; did you mean warn?`},
		{words("set log-level debug info"), "2 values are given; expected one at most; see cnpgate set --help"},
		{words("set mode loud"), `mode "loud" is not known; expected send or observe`},
		{words("set mode obseve"), `mode "obseve" is not known; did you mean observe?`},
		{words("set mode send observe"), "2 values are given; expected one at most; see cnpgate set --help"},
		{words("set mode --port wan"), "--port is given without a mode; expected one: send or observe; see cnpgate set --help"},
		{words("set log-level debug --port wan"), "--port is given without a mode; "},
		{words("set level debug"), `setting "level" is not known; expected mode or log-level`},
		{words("hint 10.1.0.1,17"), "ends given: 1; expected two as HOST,QP, or none; see cnpgate hint --help"},
		{words("hint --remove"), "--tags, --tunnel and --remove are of a hint; expected two ends as HOST,QP"},
		{words("hint 10.1.0.1 10.2.0.1"), `"10.1.0.1" is not an end of a connection; expected HOST,QP, such as 10.1.0.1,17`},
		{words("hint 10.1.0.1,1 10.2.0.1,18"), "source_qp: "},
		{words("hint 10.1.0.1,17 fd00::1,18"), "destination_ip: "},
		{words("mode observe"), "mode was removed; use cnpgate set mode"},
		{words("log-level debug"), "log-level was removed; use cnpgate set log-level"},
		{words("show hints"), "show hints was removed; use cnpgate hint"},
		{words("show version -o json"), "show version was removed; use cnpgate version"},
		{words("reload --confirm 60"), `--confirm: "60" is not a duration; expected a number with unit, such as 10ms, 500us or 60s`},
		{words("reload --confirm 1ms"), "--confirm is 1ms, expected 1s to 24h0m0s"},
		{words("reload --dry-run --confirm 1m"), "--confirm and --dry-run exclude each other; expected one of them; see cnpgate reload --help"},
		{words("reload --confirmd"), "unknown flag: --confirmd; did you mean --confirm?"},
		{words("drain --wait 5"), `--wait: "5" is not a duration; expected a number with unit, such as 10ms, 500us or 60s`},
		{words("drain --wait=-1s"), "--wait is -1s, expected 0 or more"},
		{words("drain now"), `unexpected argument "now"; expected flags only; see cnpgate drain --help`},
		{words("show flows --sort size"), `--sort: "size" is not known`},
		{words("show flows --columns source,size"), `--columns: "size" is not known`},
		{words("show flows --qp-state sure"), `--qp-state: "sure" is not known; expected unknown, candidate or confirmed`},
		{words("show flows --source 10.0.0"), `--source: "10.0.0" is not a prefix; expected an address and a length, such as 10.1.0.0/16`},
		{words("show ports --interval 6s"), "--interval is 6s, expected 10ms to 5s, or 0 for no rates"},
		{words("show notifications --follow --watch 1s"), "--follow and --watch exclude each other; "},
		{words("explain"), "addresses given: 0; expected two: those of the sender and the receiver; see cnpgate explain --help"},
		{words("explain 10.1.0.1"), "addresses given: 1; expected two: those of the sender and the receiver"},
		{words("explain 10.1.0.0/16 10.9.0.9"), `"10.1.0.0/16" is a prefix; expected an address, such as 10.1.0.0`},
		{words("explain 10.1.0.1 fd00::1"), "10.1.0.1 and fd00::1 are of two IP versions; expected addresses of one"},
		{words("explain 10.1.0.1 10.9.0.9 --qp x"), `--qp: "x" is not the number of a QP; expected 0 to 16777215`},
		{words("sim"), "0 scenarios are given, expected one: a file, or a name that cnpgate sim --list shows"},
		{words("sim incast10"), "incast10: there is no such file or built-in scenario; did you mean incast-10ms?"},
		{words("sim brust.yaml"), "brust.yaml: there is no such file or built-in scenario; did you mean burst?"},
		{words("sim what"), "what: there is no such file or built-in scenario; expected a file, or a name that cnpgate sim --list shows"},
		{words("sim --draw 0"), "--draw 0 with 0 scenarios: expected 1 to 100000 drawn networks, and no scenario"},
		{words("sim --draw 2 burst"), "--draw 2 with 1 scenarios: expected 1 to 100000 drawn networks, and no scenario"},
		{words("sim --draw 2 --explain"), "--draw prints one table; --explain, --csv, --svg and --web are for one scenario, such as draw-1-1"},
		{words("sim --draw 2 --response ppfc"), `--response, of drawn networks: "ppfc" is not known; `},
		{words("sim wrong.yaml"), "wrong.yaml:1:1: topology: missing; expected a section with dumbbell, two_dcs, file or gateways"},
		{words("start gw.yaml"), `unknown command "start" for cnpgate; did you mean cnpgate run?`},
		{words("stop"), `unknown command "stop" for cnpgate; did you mean cnpgate drain?`},
		{words("episodes"), `unknown command "episodes" for cnpgate; did you mean cnpgate show episodes?`},
		{words("explain host-a host-b"), `"host-a" is not an address; expected one such as 10.1.0.1`},
		{words("explain fe80::1%eth0 fe80::2"), `"fe80::1%eth0" has a zone, and no frame has one; expected fe80::1`},
		{words("reload gw.yaml"), `unexpected argument "gw.yaml"; expected flags only; did you mean --config gw.yaml?`},
		{words("capture x.pcapng"), `unexpected argument "x.pcapng"; expected flags only; did you mean --write x.pcapng?`},
		{words("capture -w x --flow 10.0.0.1,fd00::1"), "--flow: 10.0.0.1 and fd00::1 are of two IP versions; expected addresses of one"},
		{words("capture -w x --flow 10.0.0.0/24,10.1.0.1"), `--flow: "10.0.0.0/24" is a prefix; expected an address, such as 10.0.0.0`},
		{[]string{"check", ""}, "the name of the configuration file is empty; expected a path"},
		{words("check ."), ".: can't read the configuration file: is a directory; give the YAML file in this directory"},
		{words("check /dev/null"), "/dev/null:1:1: the file is empty; expected at least the sections gateway and ports"},
		{words("decode none.pcap"), "capture: open none.pcap: no such file or directory"},
		{words("decode gw.yaml"), "capture gw.yaml: not a pcap or pcapng file"},
		{words("agent run"), "missing: one of --socket, --server; see cnpgate agent run --help"},
		{words("agent run --site paris"), "missing: --server; expected all of --server, --site, or none; see cnpgate agent run --help"},
		{words("version --key k"), "missing: --verify; expected all of --verify, --key, or none; "},
		{words("web --socket gw.sock --listen 192.0.2.1:80"), `--listen: "192.0.2.1:80" is not known; expected a loopback address and a port, such as 127.0.0.1:8420: `},
		{words("drain --wait 1s --off"), "--off and --wait exclude each other; expected one of them; see cnpgate drain --help"},
		{words("reload --revert --confirmed"), "--confirmed and --revert exclude each other; "},
		{words("reload --confirm 100h"), "--confirm is 100h0m0s, expected 1s to 24h0m0s"},
		{words("init"), "missing: --fabric; expected with a value; see cnpgate init --help"},
		{words("init --fabric a --wan a"), "--fabric and --wan are both a; expected two interfaces"},
		{words("init --fabric a --wan b --rate 1kbps"), "--rate is 1kbps; expected 100kbps to 10Tbps"},
		{words("init --fabric a --wan b --socket gw.sock"), "--socket is gw.sock; expected an absolute path of at most 107 bytes"},
		{words("init --fabric ff:1f.7 --wan b"), "--fabric: 0000:ff:1f.7 is a PCI address, of no interface of the kernel's; "},
		{words("init --tap mirror0"), `unexpected argument "mirror0"; expected flags only; see cnpgate init --help`},
		{words("top --interval 1ms"), "--interval is 1ms, expected 100ms to 5s"},
		{words("top --sort size"), `--sort: "size" is not known; expected rate, queue, notified or name`},
		{words("show ports --socket http://localhost:80"), "no socket at http://localhost:80: the gateway's API is at a Unix socket only; expected its path"},
		{words("show ports --socket gw.yaml"), "gw.yaml is not a socket; expected that of management.listen"},
		// NIC test.
		{words("nictest -i eth0 --address ff02::1"), `--address: "ff02::1" is not a unicast IP address; expected one such as 10.0.0.1 or fd00::1`},
		{words("nictest -i eth0 --address 10.0.0.1 --mtu 0"), "a path MTU of 0 bytes; expected 1 to 9216"},
		{words("nictest -i eth0 --address 10.0.0.1 --priority 8"), "--priority 8; expected 0 to 7"},
		{words("nictest -i eth0 --address 10.0.0.1 --qp 17 --peer-qp 99999999"), "the first QPs are 17 at this end and 99999999 at the other; expected numbers from 1 to 16777215"},
		{words("nictest -i eth0 --address 10.0.0.1 --gateway-address 10.0.0.1,10.0.0.2"), "--gateway-address has two addresses of one IP version; expected at most one of each"},
		{words("nictest -i eth0 --address 10.0.0.1 --peer fd00::3"), "the addresses 10.0.0.1 and fd00::3 have different IP versions"},
		{words("nictest -i eth0 --address 10.0.0.1 --rate 10"), `--rate: "10" is not a rate; expected a number with unit`},
		{words("nictest -i eth0 --address 10.0.0.1 --bin 2s"), "--bin, --patience and --longest: a resolution of 2000000 us; expected 1 to 1000 us"},
		{words("nictest -i eth0 --address 10.0.0.1 --patience 1ms"), "--bin, --patience and --longest: a reaction within 1000 us; expected at least 20000 us"},
		{words("nictest -i eth0 --address 10.0.0.1 --longest 2h"), "--bin, --patience and --longest: experiments of at most 7200000 ms; expected 100 ms, the time for a reaction, to"},
		{words("nictest -i eth0 --address 10.0.0.1 --silence 0"), "--silence 0s; expected 1s to 1h"},
		{words("nictest -i eth0 --address 10.0.0.1 --qp 1 --peer-qp 17"), "--qp 1 and --peer-qp 17; expected numbers from 2 on"},
		{words("nictest -i eth0 --address 10.0.0.1 --peer 10.0.0.1"), "--peer and --address are both 10.0.0.1; expected the sender's address"},
		{words("nictest --simulate connectx"), `--simulate: hosts.nic: there is no NIC "connectx"; expected `},
		{words("nictest --simulate paper -i eth0"), "--interface and --simulate exclude each other; expected one of them; see cnpgate nictest --help"},
		// Flags.
		{words("--verbose"), "unknown flag: --verbose; see cnpgate --help"},
		{words("check --confg gw.yaml"), "unknown flag: --confg; did you mean --config?"},
		{words("show flows --json"), "unknown flag: --json; did you mean --output?"},
		{words("show flows --all"), "unknown flag: --all; see cnpgate show flows --help"},
		{words("show flows -socket x"), "unknown shorthand flag: 's' in -socket; did you mean --socket?"},
		{words("show flows -z"), "unknown shorthand flag: 'z' in -z; see cnpgate show flows --help"},
		{words("show flows --socket"), "flag needs an argument: --socket; see cnpgate show flows --help"},
		{words("show flows --socket="), "--socket is empty; expected the path of the gateway's socket"},
		{words("show flows --socket a --config b"), "--config and --socket exclude each other; "},
		{words("show flows -o yaml"), `--output: "yaml" is not known; expected text or json`},
		{words("version -o jsn"), `--output: "jsn" is not known; did you mean json? Expected text or json`},
		{words("show ports --watch 1"), `--watch: "1" is not a duration; expected a number with unit, such as 10ms, 500us or 60s`},
		{words("show ports --watch 1ms"), "--watch is 1ms, expected at least 100ms"},
		{words("show ports --watch=-1s"), "--watch is -1s, expected at least 100ms"},
		{words("show flows --interval 1m"), "--interval is 1m0s, expected 10ms to 5s, or 0 for no rates"},
		{words("capture -w x --duration 5"), `--duration: "5" is not a duration; expected a number with unit, such as 10ms, 500us or 60s`},
		{words("capture"), "no file to write to; expected --write FILE, or --write - for standard output"},
		{words("capture -w x --count many"), `--count: "many" is not a whole number from 0 to 18446744073709551615`},
		{words("capture -w x --trace"), "--data and --trace need a flow; expected --flow SRC,DST[,QP]"},
		{words("capture -w x --flow 10.0.0.1"), `--flow: "10.0.0.1" is not a flow; expected SRC,DST or SRC,DST,QP, such as 10.1.0.1,10.2.0.1,17`},
		{words("capture -w x --flow 10.0.0.1,10.0.0"), `--flow: "10.0.0" is not an address; expected one such as 10.1.0.1`},
		{words("capture -w x --flow 10.0.0.1,10.0.0.2,qp"), `--flow: "qp" is not the number of a QP; expected 0 to 16777215`},
		{words("capture -w x --flow 10.0.0.1,10.0.0.2 --source 10.0.0.1"), "--flow and --source exclude each other; "},
		{words("capture -w x --flow 10.0.0.1,10.0.0.2 --rate 5"), "--rate is that of packets; expected --data, --trace or --drops, too"},
		{words("capture -w x --flow 10.0.0.1,10.0.0.2 --data --rate 9999"), "--rate is 9999, expected 1 to 5000 packets a second"},
		{words("capture -w x --outcome suppressed"), "--outcome is suppressed, expected sent or observed"},
		{words("show notifications -n -3"), `--limit: "-3" is not a whole number from 0 to 65535`},
		{words("show notifications -n 0"), "--limit is 0, expected 1 to 4096"},
		{words("show notifications --kind cnp"), `--kind: "cnp" is not known; did you mean standard-cnp? Expected fast-cnp, `},
		{words("show notifications --kind FastCNP"), `--kind: "FastCNP" is not known; did you mean fast-cnp? Expected fast-cnp, `},
		{words("show notifications --outcome foo"), `--outcome: "foo" is not known; expected sent, observed or suppressed`},
		{words("show notifications --source 10.0.0"), `--source: "10.0.0" is not a prefix; expected an address and a length, such as 10.1.0.0/16`},
		{words("show notifications --source ,16777216"), `--source: "16777216" is not the number of a QP; expected 0 to 16777215`},
		{words("replay -c gw.yaml --fabric 10.0.0.1/8 in.pcap"), "--fabric: 10.0.0.1/8 has host bits set; expected 10.0.0.0/8"},
		{words("replay -c gw.yaml --fabric 10.0.0.1 in.pcap"), "--fabric: 10.0.0.1 is an address without a length; expected a prefix, such as 10.0.0.1/32"},
		{words("decode --accepts cnp in.pcap"), `--accepts: "cnp" is not known; expected long-haul-cnp or ppfc`},
		{words("show flows --source ,"), `--source: "" is not the number of a QP; expected 0 to 16777215`},
		{words("show flows --destination 10.0.0.1,x"), `--destination: "x" is not the number of a QP`},
		{words("show flows --source-ip 10.0.0.1"), "--source-ip was removed; use --source ADDRESS"},
		{words("run --source-ip 10.0.0.1"), "unknown flag: --source-ip; see cnpgate run --help"},
		{words("show config --diff --watch 1s"), "--diff reads the file once, and has no --watch; leave it out"},
		{words("show notifications --follow --watch 1s"), "--follow and --watch exclude each other; expected one of them"},
		{words("show bgp"), "show bgp was removed; use cnpgate show proxies --bgp"},
		{words("show config --history --diff"), "--diff and --history exclude each other"},
		{words("show tech a b"), "2 files are given; expected one at most; see cnpgate show tech --help"},
		{words("show tech -o json"), "show tech writes an archive, once, and has no --output; leave it out"},
		{words("agent keygen key"), "agent keygen was removed; use cnpgate fleet keys NAME"},
		{words("fleet keys gw="), `"gw=" is no gateway or host; expected NAME=ADDRESS`},
		{words("sim burst -o xml"), `--output: "xml" is not known; expected text, json or table`},
		{words("sim burst --response fastcnp"), `--response, of this scenario: "fastcnp" is not known; did you mean fast-cnp?`},
		{words("sim burst --cores two"), `--cores: "two" is not a whole number; expected one such as 1`},
		{words("check --offline=maybe gw.yaml"), `--offline: "maybe" is not known; expected true or false`},
		{words("check --offline --devices gw.yaml"), "--devices and --offline exclude each other; "},
		{words("endpoint send -i x"), "missing: --address, --peer, --peer-mac, --trust; expected with a value; see cnpgate endpoint send --help"},
		{words("endpoint receive -i x --address 10.0.0.1 --rate 1gbps"), `--rate: "1gbps" is not a rate; did you mean 1Gbps?`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			got := within(t, dir, c.args...)
			if got.status != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "cnpgate: "+c.want) {
				t.Errorf("exit status %d\nstdout: %s\nstderr: %s\nwant    cnpgate: %s", got.status, got.stdout, got.stderr, c.want)
			}
		})
	}
}

// TestConfigurationMistakes: the same for what is often wrong in a configuration. The tests of the package config have more.
func TestConfigurationMistakes(t *testing.T) {
	dir := workspace(t)
	for _, c := range []struct{ old, new, want string }{
		{"role: fabric", "role: lan", `ports[0].role: "lan" is not known; did you mean fabric? Expected fabric, wan or tap`},
		{"role: wan", "role: WAN", `ports[1].role: "WAN" is not known; did you mean wan? Expected fabric, wan or tap`},
		{"1Gbps", "1gbps", `ports[0].rate: "1gbps" is not a rate; did you mean 1Gbps? Expected `},
		{"1Gbps", `"1 Gbps"`, `ports[0].rate: "1 Gbps" is not a rate; did you mean 1Gbps?`},
		{"9.1KB", "9.1kb", `profiles.default.k_base: "9.1kb" is not a size; did you mean 9.1KB?`},
		{"profiles", "loging: {}\nprofiles", "loging: unknown key; did you mean management? Known here: gateway, "},
		{"profiles", "interfaces: []\nprofiles", "interfaces: unknown key; did you mean ports? Known here: gateway, "},
		{"[fast-cnp]", "[cnp]", `endpoints[0].accepts[0]: "cnp" is not known; did you mean standard-cnp? Expected fast-cnp, `},
		{"[fast-cnp]", "fast-cnp", "endpoints[0].accepts: expected a list, each entry fast-cnp, "},
		{"fd00:18::/64", "fd00:18::1/64", "endpoints[0].prefix: fd00:18::1/64 has host bits set; expected fd00:18::/64"},
		{"device: d1, ", "", "ports[1].device: missing; expected an argument of EAL's -a or --vdev"},
		{"peer: wan", "peer: wam", `ports[0].peer: there is no port "wam"; did you mean wan?`},
	} {
		t.Run(c.new, func(t *testing.T) {
			text := strings.Replace(goodConfig, c.old, c.new, 1)
			if text == goodConfig {
				t.Fatalf("no %q", c.old)
			}
			put(t, dir, "bad.yaml", []byte(text))
			if got := within(t, dir, "check", "bad.yaml"); got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, ": "+c.want) {
				t.Errorf("exit status %d\nstdout: %s\nstderr: %s\nwant    %s", got.status, got.stdout, got.stderr, c.want)
			}
		})
	}
}

// TestHelpfulCommands: forms of the command line that users try first.
func TestHelpfulCommands(t *testing.T) {
	dir := workspace(t)
	gatewayAt(t, filepath.Join(dir, "gw.sock"), answered, true)
	t.Setenv(socketVariable, "unix:"+filepath.Join(dir, "gw.sock"))
	for _, c := range []struct{ args, stdout string }{
		{"--version", "cnpgate "},
		{"-v", "cnpgate "},
		{"version -o json", `{"commit":"`},
		{"version -o json", `"running":{"gateway":"gw","version":"v1.2.3"`},
		{"help show flows", "One line per flow"},
		{"check gw.yaml --offline", "gw.yaml is valid"},
		{"check -c gw.yaml --offline", "gw.yaml is valid"},
		{"show flows", shown},
		{"set log-level", "log level debug (info after a reload)\n"},
		{"sim --list", "burst               A burst that passes K_min"},
		{"__complete show notifications --kind ", "standard-cnp\n"},
		{"__complete show notifications --outcome ", "suppressed\n"},
		{"__complete show flows -o ", "json\n"},
		{"__complete show flows --sort ", "rate\n"},
		{"__complete show flows --columns ", "qp_evidence\n"},
		{"__complete show flows --qp-evidence ", "psn\n"},
		{"__complete set log-level ", "warn\n"},
		{"__complete set mode ", "observe\n"},
		{"__complete set ", "log-level\n"},
		{"__complete sim ", "incast-10ms\t"},
		{"__complete sim burst --response ", "fast-cnp-hpcc\n"},
		{"__complete endpoint send --verb ", "rping\n"},
		{"__complete endpoint send --accept ", "ppfc\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(c.args)
			if strings.HasSuffix(c.args, " ") {
				args = append(args, "") // the word to complete
			}
			if got := within(t, dir, args...); got.status != 0 || !strings.Contains(got.stdout, c.stdout) {
				t.Errorf("exit status %d\nstdout: %s\nwant    %s\nstderr: %s", got.status, got.stdout, c.stdout, got.stderr)
			}
		})
	}
}

// TestCheckStandardInput: a configuration is also checked before it is a file.
func TestCheckStandardInput(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "bad.yaml", []byte(strings.Replace(goodConfig, "1Mbps", "fast", 1)))
	for file, want := range map[string]ran{
		"gw.yaml":  {0, "standard input is valid", ""},
		"bad.yaml": {1, "", `cnpgate: standard input:4:56: ports[1].rate: "fast" is not a rate`},
	} {
		c := command(dir, "check", "-c", "-", "--offline")
		in, err := os.Open(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		c.Stdin = in
		if got := finished(t, c); got.status != want.status || !strings.Contains(got.stdout, want.stdout) || !strings.Contains(got.stderr, want.stderr) {
			t.Errorf("%s: %+v, want %+v", file, got, want)
		}
	}
}
