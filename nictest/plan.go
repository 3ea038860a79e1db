package nictest

import "strconv"

// Group is what trials are about.
type Group string

// The groups, in the order of a plan.
const (
	Single  Group = "single"  // one notification, again and again
	Number  Group = "number"  // effect of n notifications
	Spacing Group = "spacing" // so many, at several distances
	Flood   Group = "flood"   // many a second
	FormOf  Group = "form"    // fields of a CNP, and other formats
	Pausing Group = "pause"   // flow control of the link
)

// Trial is one experiment: notifications of a form, and what the sender does.
type Trial struct {
	Name    string `json:"name"`
	Group   Group  `json:"group"`
	Form    string `json:"form"`
	Count   int    `json:"count"`
	Spacing int64  `json:"spacing_ns"`
}

const (
	baseForm = "standard-cnp"
	// A form is tried by a burst that lasts long enough for NICs on which single CNPs have no visible effect.
	formCount, formSpacing = 50, 4 * microsecond
	noisySpacing           = 10 * microsecond // where the sender's rate varies by itself
	trainCount             = 20
	floodLength            = 20 * millisecond
)

// Plan lists the trials. A quick one has the most important of them. v6 is the IP version of the connection; other says whether the sender's address of
// the other version is known.
func Plan(quick, v6, other bool) (plan []Trial) {
	add := func(name string, g Group, form string, count int, spacing int64) {
		plan = append(plan, Trial{name, g, form, count, spacing})
	}
	singles := 12
	numbers, spacings, floods := []int{2, 5, 20, 100}, []int64{1000, 500, 200, 100, 50, 20, 10, 5, 2}, []int64{10, 100, 500}
	if quick {
		singles, numbers, spacings, floods = 3, []int{5, 100}, []int64{500, 50, 4}, []int64{100}
	}
	for range singles {
		add("1 CNP", Single, baseForm, 1, 0)
	}
	for _, n := range numbers {
		add(strconv.Itoa(n)+" CNPs, 50 us apart", Number, baseForm, n, 50*microsecond)
	}
	for _, us := range spacings {
		add(strconv.Itoa(trainCount)+" CNPs, "+strconv.FormatInt(us, 10)+" us apart", Spacing, baseForm, trainCount, us*microsecond)
	}
	for _, thousands := range floods {
		add(strconv.FormatInt(thousands, 10)+" thousand CNPs a second", Flood, baseForm, int(thousands*1000*floodLength/second), second/(thousands*1000))
	}
	for _, f := range forms {
		switch {
		case f.only == 4 && v6, f.only == 6 && !v6, f.other && !other, quick && !f.quick:
		case f.link:
			add(f.name, Pausing, f.name, 1, 0)
		default:
			add(f.name, FormOf, f.name, formCount, formSpacing)
		}
	}
	return plan
}
