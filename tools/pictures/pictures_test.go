package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestScreen: the last complete display is drawn, with what SVG would misread escaped.
func TestScreen(t *testing.T) {
	var out strings.Builder
	if err := drawScreen(&out, clear+"first\r\n"+clear+"PORT  A\r\n\r\nx <&y\r\n"+clear+"cut"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">PORT  A</text>", ">x &lt;&amp;y</text>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture lacks %s:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "first") || strings.Contains(out.String(), "cut") || strings.Contains(out.String(), "%!") {
		t.Errorf("the picture is\n%s", &out)
	}
	if err := drawScreen(&out, "no display"); err == nil {
		t.Error("a recording without a display was drawn")
	}
}

// TestDashboard: a panel with values is drawn with its legend, also if some values are not numbers; one without values is left out.
func TestDashboard(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if expr := r.FormValue("query"); !strings.HasPrefix(expr, "rate(cnpgate_forwarded_bytes_total") && !strings.HasPrefix(expr, "8 * rate(cnpgate_forwarded_bytes_total") {
			fmt.Fprint(w, `{"data":{"result":[]}}`)
			return
		}
		fmt.Fprint(w, `{"data":{"result":[{"metric":{"instance":"gw","port":"fabric0"},"values":[[1,"NaN"],[2,"5"],[3,"7"]]}]}}`)
	}))
	defer server.Close()
	var out strings.Builder
	if err := drawDashboard(&out, "../../deploy/grafana/cnpgate.json", server.URL, 60); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, ">Forwarded<") || !strings.Contains(text, ">fabric0<") || strings.Contains(text, ">Utilization<") {
		t.Errorf("the picture is\n%s", text)
	}
	if err := drawDashboard(&out, "../../deploy/grafana/cnpgate.json", "http://127.0.0.1:1", 60); err == nil {
		t.Error("a dashboard was drawn without a server")
	}
}
