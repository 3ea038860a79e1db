//go:build secondopinion

package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/testkit/program"
)

// kubernetesRelease is whose OpenAPI documents the manifests are validated against.
const kubernetesRelease = "v1.34.1"

// manifests are the documents of a Kubernetes manifest.
func manifests(t *testing.T, file string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile("kubernetes/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, text)
}

// documents are the documents of a YAML text.
func documents(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m map[string]any
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
}

// openAPI is the folder with Kubernetes' OpenAPI documents: its source is a Go module, of which nothing is compiled.
func openAPI(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@"+kubernetesRelease)
	cmd.Dir = t.TempDir() // outside of this module, whose go.mod stays as it is
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if err := errors.Join(err, json.Unmarshal(out, &module)); err != nil {
		t.Fatalf("%v: %s", err, module.Error)
	}
	return filepath.Join(module.Dir, "api/openapi-spec/v3")
}

// mistakes are the violations of Kubernetes' OpenAPI documents in manifests.
func mistakes(t *testing.T, folder string, all []map[string]any) string {
	t.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", "testdata/kubernetes.py", folder)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s (Debian's python3-jsonschema is needed)", err, out)
	}
	return string(out)
}

// at goes down a path of keys and indices.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			v = v.([]any)[s]
		}
		if v == nil {
			t.Fatalf("there is no %v in %v", step, path)
		}
	}
	return v
}

// TestKubernetesManifest: it is valid by Kubernetes' own OpenAPI documents, and with one mistake it isn't.
func TestKubernetesManifest(t *testing.T) {
	folder := openAPI(t)
	for _, file := range []string{"cnpgate.yaml", "cnpgate-agent.yaml"} {
		if got := mistakes(t, folder, manifests(t, file)); got != "" {
			t.Errorf("%s: %s", file, got)
		}
	}
	container := []any{"spec", "template", "spec", "containers", 0}
	for _, c := range []struct {
		name   string
		change func(set map[string]any)
		want   string
	}{
		{"unknown field", func(set map[string]any) {
			at(t, set, container...).(map[string]any)["readynessProbe"] = map[string]any{}
		}, "readynessProbe"},
		{"wrong type", func(set map[string]any) {
			at(t, set, append(container, "readinessProbe")...).(map[string]any)["periodSeconds"] = "5s"
		}, "'5s' is not of type 'integer'"},
		{"missing field", func(set map[string]any) { delete(at(t, set, container...).(map[string]any), "name") }, "'name' is a required property"},
		{"wrong kind", func(set map[string]any) { set["apiVersion"] = "apps/v1beta9" }, "not a kind of this Kubernetes"},
	} {
		all := manifests(t, "cnpgate.yaml")
		c.change(all[2])
		if got := mistakes(t, folder, all); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestKubernetesFits: the parts of the manifest are consistent, which no schema can check.
func TestKubernetesFits(t *testing.T) {
	all := manifests(t, "cnpgate.yaml")
	text := at(t, all[1], "data", "cnpgate.yaml").(string)
	c, err := config.Parse("cnpgate.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := "/run/cnpgate/cnpgate.sock"; c.Management.Socket != want {
		t.Errorf("the socket is %q; the probes ask at %s", c.Management.Socket, want)
	}
	pod := at(t, all[2], "spec", "template", "spec")
	var volumes []string
	for _, v := range at(t, pod, "volumes").([]any) {
		volumes = append(volumes, at(t, v, "name").(string))
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range at(t, pod, list).([]any) {
			for _, m := range at(t, container, "volumeMounts").([]any) {
				if name := at(t, m, "name").(string); !slices.Contains(volumes, name) {
					t.Errorf("%s is mounted, but there is no such volume", name)
				}
			}
			for _, resource := range []string{"hugepages-2Mi", "intel.com/cnpgate", "memory"} {
				requests, limits := at(t, container, "resources", "requests").(map[string]any), at(t, container, "resources", "limits").(map[string]any)
				if requests[resource] != limits[resource] {
					t.Errorf("%s: %v requested, at most %v; Kubernetes wants one value", resource, requests[resource], limits[resource])
				}
			}
		}
	}
	if selector, labels := at(t, all[2], "spec", "selector", "matchLabels"), at(t, all[2], "spec", "template", "metadata", "labels"); !sameLabels(selector, labels) {
		t.Errorf("the pods' labels are %v, the selector's %v", labels, selector)
	}
}

// TestAgentManifestFits: the command line is one of cnpgate agent run, also with the options that are comments, its files are mounted, and the kernel
// can show the agent what it needs.
func TestAgentManifestFits(t *testing.T) {
	text, err := os.ReadFile("kubernetes/cnpgate-agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	gateway := filepath.Join(t.TempDir(), "cnpgate")
	program.Put(t, "..", gateway)
	for _, all := range [][]byte{text, bytes.ReplaceAll(text, []byte("# - --"), []byte("- --"))} {
		pod := at(t, documents(t, all)[1], "spec", "template", "spec")
		if at(t, pod, "hostNetwork") != true || at(t, pod, "hostPID") != true {
			t.Error("the agent has neither the node's network nor its PIDs")
		}
		container := at(t, pod, "containers", 0)
		mount := at(t, container, "volumeMounts", 0)
		if at(t, mount, "name") != at(t, pod, "volumes", 0, "name") {
			t.Error("no such volume")
		}
		var line []string
		for _, word := range at(t, container, "command").([]any) {
			option, file, is := strings.Cut(word.(string), "=/")
			if is && !strings.HasPrefix("/"+file, at(t, mount, "mountPath").(string)+"/") {
				t.Errorf("%s: its file is not mounted", word)
			}
			if option == "--key" {
				word = "--key=/nonexistent"
			}
			line = append(line, word.(string))
		}
		out, _ := exec.Command(gateway, line[1:]...).CombinedOutput() // fails, as there is no key
		if want := "the host's key: open /nonexistent: no such file"; !strings.Contains(string(out), want) {
			t.Errorf("%q ends with %s, expected %q", line, out, want)
		}
	}
}

func sameLabels(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}
