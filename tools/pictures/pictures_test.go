package main

import (
	"strings"
	"testing"
)

// TestScreen: the complete display with the longest queue in front of a busy port is drawn, with what SVG would misread escaped.
func TestScreen(t *testing.T) {
	const short, long, idle = "PORT  LOAD QUEUE TX\r\nwan   100% 12KB  1\r\n\r\nx\r\n", "PORT  LOAD QUEUE TX\r\nwan   96%  1.9MB 2\r\n\r\nx <&y\r\n",
		"PORT  LOAD QUEUE TX\r\nwan   52%  2MB   3\r\n\r\nx\r\n"
	var out strings.Builder
	if err := drawScreen(&out, "begin"+clear+short+clear+long+clear+idle+clear+short+clear+"cut"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">wan   96%  1.9MB 2</text>", ">x &lt;&amp;y</text>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture lacks %s:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "12KB") || strings.Contains(out.String(), "cut") || strings.Contains(out.String(), "%!") {
		t.Errorf("the picture is\n%s", &out)
	}
	if err := drawScreen(&out, "no display"); err == nil {
		t.Error("a recording without a display was drawn")
	}
}
