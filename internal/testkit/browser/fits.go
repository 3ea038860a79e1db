package browser

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
)

// Views are the screens at which every page must fit: of a desktop, a tablet and a phone, light and dark.
var Views = []View{
	{Width: 1440, Height: 900, Still: true}, {Width: 768, Height: 1024, Dark: true, Still: true}, {Width: 360, Height: 740, Still: true},
	{Width: 1440, Height: 900, Dark: true, Still: true}, {Width: 768, Height: 1024, Still: true}, {Width: 360, Height: 740, Dark: true, Still: true},
}

// Fits checks that the page, as it is, fits each of Views: it doesn't scroll horizontally, no text is wider than its box or cut off by another one, no label of a picture
// leaves it or covers another label, and that axe-core finds nothing in the smallest dark one (in the longer mode, also in the largest light one). The default run has these
// two only. Afterwards the page is looked at as before. Pictures for people go to the folder CNPGATE_PICTURES.
func (p *Page) Fits(name string, before View) {
	p.t.Helper()
	for i := 0; i < len(Views); i += effort.Long + (len(Views)-1)*(1-effort.Long) {
		v := Views[i]
		p.Look(v)
		screen := fmt.Sprintf("%s-%d", name, v.Width)
		if v.Dark {
			screen += "-dark"
		}
		if wide := Eval[int64](p, "document.documentElement.scrollWidth"); wide > v.Width {
			p.t.Errorf("%s: the page is %d pixels wide; the widest part is %s", screen, wide, Eval[string](p, widest))
		}
		for _, found := range Eval[[]string](p, misfits) {
			p.t.Errorf("%s: %s", screen, found)
		}
		if i == len(Views)-1 || i == 0 && effort.Long == 1 { // it takes seconds
			p.Accessible()
		}
		if dir := os.Getenv("CNPGATE_PICTURES"); dir != "" {
			p.Save(filepath.Join(dir, screen+".png"))
		}
	}
	p.Look(before)
}

// widest names the innermost element that reaches farthest to the right.
const widest = `(() => {
	let most = null, right = innerWidth;
	for (const e of document.body.querySelectorAll("*")) {
		const r = e.getBoundingClientRect().right;
		if (r >= right && !e.closest("[hidden]")) [most, right] = [e, r];
	}
	return most ? most.outerHTML.slice(0, 200) : "none";
})()`

// misfits lists the texts that leave their boxes. A box that scrolls may be narrower than what is in it, and one with an ellipsis says itself that it is cut.
const misfits = `(() => {
	const found = new Set(), slack = 1.5, smallest = 8, texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), labels = new Map();
	const short = (s) => JSON.stringify(s.trim().slice(0, 60));
	for (let node = texts.nextNode(); node; node = texts.nextNode()) {
		const e = node.parentElement, text = node.textContent;
		if (!text.trim() || e.closest("script, style, option, title, desc, noscript") || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		const rects = [...range.getClientRects()].filter((r) => r.width > 1 && r.height > 1);
		if (!rects.length) continue;
		if (Math.max(...rects.map((r) => r.height)) < smallest) found.add("the text " + short(text) + " is less than " + smallest + " pixels high");
		const picture = e.closest("svg");
		if (picture) {
			const box = picture.getBoundingClientRect(), r = range.getBoundingClientRect();
			if (r.left < box.left - slack || r.right > box.right + slack || r.top < box.top - slack || r.bottom > box.bottom + slack) found.add("the label " + short(text) + " leaves its picture");
			labels.set(picture, [...(labels.get(picture) ?? []), [r, text]]);
			continue;
		}
		const scrolls = (a) => a && a !== document.body && (/auto|scroll/.test(getComputedStyle(a).overflowX) || scrolls(a.parentElement));
		for (let a = e; a && a !== document.body; a = a.parentElement) {
			const style = getComputedStyle(a), box = a.getBoundingClientRect();
			if (box.width <= 1) break; // for screen readers only
			if (style.display === "inline" || style.display === "contents") continue;
			if (style.textOverflow === "ellipsis") break;
			const over = Math.max(...rects.map((r) => Math.max(r.right - box.right, box.left - r.left)));
			if (over > slack && scrolls(a)) break;
			if (over > slack) {
				found.add("the text " + short(text) + " leaves its box <" + a.tagName.toLowerCase() + " class=" + JSON.stringify(a.className) + "> by " + Math.round(over) + " pixels");
				break;
			}
			if (style.overflowX !== "visible") break;
		}
	}
	for (const all of labels.values()) for (const [i, [a, text]] of all.entries()) for (const [b, other] of all.slice(i + 1)) {
		if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > Math.min(a.height, b.height) / 3) found.add("the labels " + short(text) + " and " + short(other) + " cover each other");
	}
	return [...found].slice(0, 12);
})()`
