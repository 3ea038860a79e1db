package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnpgate/cnpgate/control/config"
)

// manualCommand is for scripts/release.
func manualCommand() *cobra.Command {
	var keys string
	c := &cobra.Command{
		Use:    "manual DIR [--keys docs/configuration.md]",
		Short:  "Write the manual pages to a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, page := range pagesOf(c.Root()) {
				if err := page.write(args[0]); err != nil {
					return err
				}
			}
			meanings, err := os.ReadFile(keys)
			if err != nil {
				return err
			}
			page, err := configurationPage(string(meanings))
			if err != nil {
				return err
			}
			return page.write(args[0])
		},
	}
	c.Flags().StringVar(&keys, "keys", "docs/configuration.md", "page with a table row for each key of the configuration")
	return c
}

// manualPage is a manual page in roff.
type manualPage struct {
	name    string
	section int
	text    strings.Builder
}

// newPage begins a page. Its date is that of SOURCE_DATE_EPOCH, if that is set.
func newPage(name string, section int, does string) *manualPage {
	p, when := &manualPage{name: name, section: section}, time.Now()
	if epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		when = time.Unix(epoch, 0)
	}
	p.line(`.TH "%s" %d "%s" "cnpgate %s" cnpgate`, strings.ToUpper(name), section, when.UTC().Format(time.DateOnly), roff(version))
	p.line(".SH NAME\n%s \\- %s", roff(name), roff(does))
	return p
}

func (p *manualPage) write(dir string) error {
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d", p.name, p.section)), []byte(p.text.String()), 0o666)
}

func (p *manualPage) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// roff is a text without anything that roff would take as its own.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// prose writes paragraphs. Indented lines are a table or an example, and stay as they are.
func (p *manualPage) prose(text string) {
	fixed := false
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(l, "  ")
		switch {
		case indented && !fixed:
			p.line(".PP\n.nf")
		case fixed && !indented:
			p.line(".fi\n.PP")
		case l == "":
			p.line(".PP")
		}
		if fixed = indented; l != "" {
			p.line("%s", roff(l))
		}
	}
	if fixed {
		p.line(".fi")
	}
}

func pagesOf(c *cobra.Command) []*manualPage {
	pages := []*manualPage{commandPage(c)}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			pages = append(pages, pagesOf(sub)...)
		}
	}
	return pages
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func commandPage(c *cobra.Command) *manualPage {
	c.InitDefaultHelpFlag()
	p := newPage(pageName(c), 1, strings.TrimSuffix(c.Short, "."))
	p.line(".SH SYNOPSIS\n\\fB%s\\fP", roff(c.UseLine()))
	p.line(".SH DESCRIPTION")
	p.prose(cmp.Or(c.Long, c.Short))
	if c.Flags().HasAvailableFlags() {
		p.line(".SH OPTIONS")
		c.LocalFlags().VisitAll(p.option)
		c.InheritedFlags().VisitAll(p.option)
	}
	p.line(".SH EXAMPLES")
	for _, example := range examplesOf(c) {
		p.line(".PP\n.nf\n%s\n.fi", roff(example))
	}
	p.line(".SH SEE ALSO")
	p.line("%s", strings.Join(related(c), ", "))
	return p
}

func (p *manualPage) option(f *pflag.Flag) {
	if f.Hidden {
		return
	}
	kind, usage := pflag.UnquoteUsage(f)
	name := `\-\-` + roff(f.Name)
	if f.Shorthand != "" {
		name = `\-` + f.Shorthand + ", " + name
	}
	p.line(".TP\n\\fB%s\\fP %s", name, roff(kind))
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
		usage += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	p.line("%s", roff(usage))
}

// examplesOf are a command's examples, or those of the commands below it.
func examplesOf(c *cobra.Command) []string {
	examples := slices.Clone(manualExamples[c.CommandPath()])
	if examples == nil {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				below := examplesOf(sub)
				examples = append(examples, below[:min(1, len(below))]...)
			}
		}
	}
	return examples
}

// related are the pages that a command's page refers to.
func related(c *cobra.Command) []string {
	pages := []string{`\fBcnpgate.yaml\fP(5)`}
	add := func(c *cobra.Command) { pages = append(pages, fmt.Sprintf(`\fB%s\fP(1)`, roff(pageName(c)))) }
	if c.HasParent() {
		add(c.Parent())
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			add(sub)
		}
	}
	return pages
}

// schemaNode is what a page says of a key, from the JSON Schema.
type schemaNode struct {
	Description          string
	Default              any
	Properties           map[string]schemaNode
	Items                *schemaNode
	AdditionalProperties json.RawMessage
}

// keyRow is a row about a key in docs/configuration.md, whose last cell says what the key means.
var keyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\| ([^|]*) \\|$")

var markdownLink = regexp.MustCompile(`\[([^]]+)\]\([^)]*\)`)

// configurationPage is cnpgate.yaml(5): every key, with form, default and reload from the schema, and its meaning from docs/configuration.md.
func configurationPage(meanings string) (*manualPage, error) {
	means := map[string]string{}
	for _, m := range keyRow.FindAllStringSubmatch(meanings, -1) {
		means[m[1]] = strings.ReplaceAll(markdownLink.ReplaceAllString(m[2], "$1"), "`", "")
	}
	var root schemaNode
	if err := json.Unmarshal(config.JSONSchema(), &root); err != nil {
		return nil, err
	}
	p := newPage("cnpgate.yaml", 5, "configuration of cnpgate")
	p.line(".SH DESCRIPTION")
	p.prose("A YAML file. Every mistake is reported with line and column: cnpgate check FILE. Keys with \"Reload: live\" change by cnpgate reload, those with\n" +
		"\"resize\" up to what memory was reserved for at the start, and those with \"restart\" when the gateway starts again.")
	p.line(".SH KEYS")
	if err := p.keys("", &root, means); err != nil {
		return nil, err
	}
	p.line(".SH EXAMPLES\nA gateway between two kernel interfaces, which only observes:\n.PP\n.nf")
	for l := range strings.SplitSeq(exampleConfiguration, "\n") {
		p.line("%s", roff(l))
	}
	p.line(".fi\n.SH FILES\n/etc/cnpgate/cnpgate.yaml, /usr/share/cnpgate/*.yaml (examples), /usr/share/cnpgate/cnpgate.schema.json (for editors)")
	p.line(".SH SEE ALSO\n\\fBcnpgate\\-check\\fP(1), \\fBcnpgate\\-reload\\fP(1), /usr/share/doc/cnpgate/docs/configuration.md")
	return p, nil
}

// keys writes the keys of a section, in the order of their names. One without a meaning is an error.
func (p *manualPage) keys(path string, section *schemaNode, means map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(section.Properties)) {
		key, node := strings.TrimPrefix(path+"."+name, "."), section.Properties[name]
		if means[key] == "" && node.Properties == nil {
			return fmt.Errorf("no row says what %s means; expected one in docs/configuration.md", key)
		}
		p.line(".TP\n\\fB%s\\fP", roff(key))
		if text := strings.TrimSpace(means[key] + " " + node.about()); text != "" {
			p.line("%s", roff(text))
		} else {
			p.line("A section.")
		}
		inner := &node
		if node.Items != nil {
			inner, key = node.Items, key+"[]"
		} else if len(node.AdditionalProperties) > 0 && node.AdditionalProperties[0] == '{' {
			inner, key = &schemaNode{}, key+".NAME"
			if err := json.Unmarshal(node.AdditionalProperties, inner); err != nil {
				return err
			}
		}
		if err := p.keys(key, inner, means); err != nil {
			return err
		}
	}
	return nil
}

// about is the form of a key's value, its default and what a change needs.
func (n *schemaNode) about() string {
	if n.Description == "" {
		return ""
	}
	text := "Expected: " + n.Description
	if n.Default != nil {
		text += fmt.Sprintf(" Default: %v.", n.Default)
	}
	return text
}

// manualExamples are the examples in the help and the manual page of each command.
var manualExamples = map[string][]string{
	"cnpgate":                  {"cnpgate init --fabric eth0 --wan eth1 -o cnpgate.yaml", "cnpgate check cnpgate.yaml", "cnpgate run cnpgate.yaml", "cnpgate replay --health sick.pcap"},
	"cnpgate capture":          {"cnpgate capture -w notifications.pcapng --duration 1m", "cnpgate capture --flow 10.1.0.1,10.2.0.1,0x11 --trace --count 20 -w - | cnpgate decode -", "cnpgate capture --drops queue-full-bytes --duration 10s -w drops.pcapng"},
	"cnpgate check":            {"cnpgate check /etc/cnpgate/cnpgate.yaml", "cnpgate check --offline cnpgate.yaml"},
	"cnpgate completion":       {"cnpgate completion bash > /etc/bash_completion.d/cnpgate", "cnpgate completion fish > ~/.config/fish/completions/cnpgate.fish", "cnpgate completion zsh > /usr/local/share/zsh/site-functions/_cnpgate"},
	"cnpgate decode":           {"cnpgate decode notifications.pcapng", "tcpdump -i eth0 -U -w - | cnpgate decode -"},
	"cnpgate agent run":        {"cnpgate agent run --site paris --server tls://nats-1:4222 --key /etc/cnpgate/agent.nk", "cnpgate agent run --socket /run/cnpgate/cnpgate.sock"},
	"cnpgate agent show":       {"cnpgate agent show", "cnpgate agent show -o json"},
	"cnpgate show tech":        {"cnpgate show tech", "cnpgate show tech - >bundle.tar.gz"},
	"cnpgate show fleet":       {"cnpgate show fleet", "cnpgate show fleet --watch 2s"},
	"cnpgate fleet keys":       {"cnpgate fleet keys gw-1=192.0.2.1 gw-2=192.0.2.2 --dir fleet", "cnpgate fleet keys agent --dir /etc/cnpgate"},
	"cnpgate nictest":          {"cnpgate nictest --interface eth0 --address 198.18.0.9 --nic ConnectX-6 --profile my-nic.yaml", "cnpgate nictest --simulate connectx-default --quick"},
	"cnpgate endpoint receive": {"cnpgate endpoint receive --interface eth0 --address 198.18.0.2 --qps 4"},
	"cnpgate endpoint send": {"cnpgate endpoint send --interface eth0 --address 198.18.0.1 --peer 198.18.0.2 --peer-mac 02:00:00:18:00:02 --trust 198.18.0.254 " +
		"--qps 4 --rate 300Mbps --duration 5s"},
	"cnpgate drain":              {"cnpgate drain --wait 10s", "cnpgate drain --off"},
	"cnpgate explain":            {"cnpgate explain 10.1.0.5 10.2.0.7", "cnpgate explain 10.1.0.5 10.2.0.7 --qp 118 -o json"},
	"cnpgate init":               {"cnpgate init --fabric eth0 --wan eth1 -o cnpgate.yaml", "cnpgate init --fabric eth0 --wan eth1 --tap --rate 1Gbps"},
	"cnpgate status":             {"cnpgate status", "cnpgate status --config /etc/cnpgate/cnpgate.yaml"},
	"cnpgate top":                {"cnpgate top --by sender", "cnpgate top --by queue -o json"},
	"cnpgate hint":               {"cnpgate hint 10.1.0.1,17 10.2.0.1,18", "cnpgate hint 10.1.0.1,17 10.2.0.1,18 --remove"},
	"cnpgate set":                {"cnpgate set mode observe --port wan", "cnpgate set log-level debug"},
	"cnpgate reload":             {"cnpgate reload --dry-run", "cnpgate reload --confirm 60s", "cnpgate reload --confirmed"},
	"cnpgate replay":             {"cnpgate replay --health sick.pcap", "cnpgate replay --config replay.yaml --fabric 198.18.0.2/32 --emitted notifications.pcap in.pcap"},
	"cnpgate run":                {"cnpgate run /etc/cnpgate/cnpgate.yaml", "cnpgate run --config cnpgate.yaml --report report.json"},
	"cnpgate show config":        {"cnpgate show config", "cnpgate show config --history"},
	"cnpgate show counters":      {"cnpgate show counters -o json", "cnpgate show counters --since-mark"},
	"cnpgate show episodes":      {"cnpgate show episodes"},
	"cnpgate show flows":         {"cnpgate show flows --sort rate --limit 10 --columns source,destination,rate", "cnpgate show flows -o json"},
	"cnpgate show health":        {"cnpgate show health"},
	"cnpgate show notifications": {"cnpgate show notifications --follow", "cnpgate show notifications --outcome suppressed --source 10.1.0.0/16"},
	"cnpgate show senders":       {"cnpgate show senders --sort notifications --limit 10"},
	"cnpgate web":                {"cnpgate web", "cnpgate web report.json"},
	"cnpgate show ports":         {"cnpgate show ports --watch 1s"},
	"cnpgate show proxies":       {"cnpgate show proxies", "cnpgate show proxies --bgp"},
	"cnpgate show queues":        {"cnpgate show queues"},
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
