package main

// manualExamples are the examples in the manual page of each command.
var manualExamples = map[string][]string{
	"cnpgate":                       {"cnpgate init --fabric eth0 --wan eth1 -o cnpgate.yaml", "cnpgate check cnpgate.yaml", "cnpgate run cnpgate.yaml"},
	"cnpgate capture":               {"cnpgate capture --write notifications.pcapng --duration 10s", "cnpgate capture --write - | tshark -r -"},
	"cnpgate check":                 {"cnpgate check /etc/cnpgate/cnpgate.yaml", "cnpgate check --offline cnpgate.yaml"},
	"cnpgate completion bash":       {"cnpgate completion bash > /etc/bash_completion.d/cnpgate"},
	"cnpgate completion fish":       {"cnpgate completion fish > ~/.config/fish/completions/cnpgate.fish"},
	"cnpgate completion powershell": {"cnpgate completion powershell > cnpgate.ps1"},
	"cnpgate completion zsh":        {"cnpgate completion zsh > /usr/local/share/zsh/site-functions/_cnpgate"},
	"cnpgate decode":                {"cnpgate decode notifications.pcapng", "tcpdump -i eth0 -U -w - | cnpgate decode -"},
	"cnpgate endpoint receive":      {"cnpgate endpoint receive --interface eth0 --address 198.18.0.2 --qps 4"},
	"cnpgate endpoint send": {"cnpgate endpoint send --interface eth0 --address 198.18.0.1 --peer 198.18.0.2 --peer-mac 02:00:00:18:00:02 --trust 198.18.0.254 " +
		"--qps 4 --rate 300Mbps --duration 5s"},
	"cnpgate explain":            {"cnpgate explain 10.1.0.5 10.2.0.7", "cnpgate explain 10.1.0.5 10.2.0.7 --qp 118 -o json"},
	"cnpgate init":               {"cnpgate init --fabric eth0 --wan eth1 -o cnpgate.yaml", "cnpgate init --fabric eth0 --wan eth1 --tap --rate 1Gbps"},
	"cnpgate log-level":          {"cnpgate log-level", "cnpgate log-level debug"},
	"cnpgate mark":               {"cnpgate mark && sleep 60 && cnpgate show counters --since-mark"},
	"cnpgate top":                {"cnpgate top --by sender", "cnpgate top --by queue -o json"},
	"cnpgate show hints":         {"cnpgate show hints"},
	"cnpgate reload":             {"cnpgate reload", "cnpgate reload --config /etc/cnpgate/cnpgate.yaml"},
	"cnpgate replay":             {"cnpgate replay --config replay.yaml --fabric 198.18.0.2/32 --emitted notifications.pcap in.pcap"},
	"cnpgate run":                {"cnpgate run /etc/cnpgate/cnpgate.yaml", "cnpgate run --config cnpgate.yaml --report report.json"},
	"cnpgate schema":             {"cnpgate schema > cnpgate.schema.json"},
	"cnpgate show bgp":           {"cnpgate show bgp"},
	"cnpgate show config":        {"cnpgate show config"},
	"cnpgate show counters":      {"cnpgate show counters -o json", "cnpgate show counters --since-mark"},
	"cnpgate show episodes":      {"cnpgate show episodes"},
	"cnpgate show flows":         {"cnpgate show flows --sort rate --limit 10 --columns source,destination,rate", "cnpgate show flows -o json"},
	"cnpgate show health":        {"cnpgate show health"},
	"cnpgate show notifications": {"cnpgate show notifications --follow", "cnpgate show notifications --outcome suppressed --source-ip 10.1.0.0/16"},
	"cnpgate show pairs":         {"cnpgate show pairs"},
	"cnpgate show ports":         {"cnpgate show ports --watch 1s"},
	"cnpgate show proxies":       {"cnpgate show proxies"},
	"cnpgate show queues":        {"cnpgate show queues"},
	"cnpgate show version":       {"cnpgate show version"},
	"cnpgate sim":                {"cnpgate sim --list", "cnpgate sim incast-10ms --svg incast"},
	"cnpgate version":            {"cnpgate version", "cnpgate version -o json"},
}

// exampleConfiguration is the example in cnpgate.yaml(5).
const exampleConfiguration = `gateway: {name: gw}
dpdk: {hugepages: false, workers: [0], idle: backoff}
ports:
  - {name: fabric, device: "net_af_packet0,iface=eth0", role: fabric, peer: wan, rate: 1Gbps, mtu: 1500}
  - {name: wan, device: "net_af_packet1,iface=eth1", role: wan, peer: fabric, rate: 1Gbps, rtt: 10ms, mtu: 1500}
endpoints: [{prefix: 10.1.0.0/16, accepts: [standard-cnp]}]
notifications: {mode: observe, standard_cnp: {enabled: true}}
management: {listen: "unix:/run/cnpgate/cnpgate.sock"}`
