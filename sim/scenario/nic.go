package scenario

import (
	"embed"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/config"
)

// nics are the NICs that come with cnpgate, each with its sources.
//
//go:embed nics/*.yaml
var nics embed.FS

// NICs returns the names of the NICs that come with cnpgate, in alphabetical order.
func NICs() (names []string) {
	entries, _ := nics.ReadDir("nics") // it is embedded
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// readNIC returns the file of a NIC: one of ours, or the operator's.
func readNIC(name string, files Files) ([]byte, error) {
	if text, err := nics.ReadFile("nics/" + name + ".yaml"); err == nil {
		return text, nil
	}
	if !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("there is no NIC %q; expected %s, or a file such as my-nic.yaml", name, strings.Join(NICs(), ", "))
	}
	return files(name)
}

// fitNIC adds to a scenario's hosts what the file of their NIC has and they haven't.
func fitNIC(root *yaml.Node, files Files) error {
	hosts := find(root, "hosts")
	if hosts == nil {
		return nil
	}
	nic := find(hosts, "nic")
	if nic == nil || nic.Kind != yaml.ScalarNode {
		return nil // a mistake, if any, shows when the scenario is read
	}
	text, err := readNIC(nic.Value, files)
	if err != nil {
		return fmt.Errorf("hosts.nic: %w", err)
	}
	doc, err := config.ParseDocument(nic.Value, "name and source", text)
	if err != nil {
		return err
	}
	doc.Decode(&nicDocument{})
	if err := doc.Err(); err != nil {
		return err
	}
	for i := 0; i+1 < len(doc.Root.Content); i += 2 {
		if key := doc.Root.Content[i].Value; key != "name" && key != "source" {
			merge(hosts, key, doc.Root.Content[i+1])
		}
	}
	return nil
}

// merge adds to a mapping what a value of a key has and the mapping hasn't.
func merge(into *yaml.Node, key string, value *yaml.Node) {
	if into.Kind != yaml.MappingNode {
		return
	}
	have := find(into, key)
	switch {
	case have == nil:
		into.Content = append(into.Content, scalar(into, key), value)
	case value.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(value.Content); i += 2 {
			merge(have, value.Content[i].Value, value.Content[i+1])
		}
	}
}
