package fleet

import (
	"strings"

	"github.com/cnpgate/cnpgate/fleet/wire"
)

// Subjects are cnpgate.SITE.SENDER.KIND, and for messages to one gateway cnpgate.SITE.SENDER.KIND.RECIPIENT. So a broker's permissions are
// one line each: a sender may publish below its own name only, and a gateway may subscribe to its site.

const subjectRoot = "cnpgate"

// Subject is the subject of a sender's messages of a kind.
func Subject(site, sender string, k wire.Kind) string {
	return strings.Join([]string{subjectRoot, site, sender, k.String()}, ".")
}

// SubjectTo is the subject of a sender's messages of a kind to one recipient.
func SubjectTo(site, sender string, k wire.Kind, to string) string {
	return Subject(site, sender, k) + "." + to
}

// MayPublish is the subject below which a broker lets a sender publish.
func MayPublish(site, sender string) string { return subjectRoot + "." + site + "." + sender + ".>" }

// MaySubscribe is the subject below which a broker lets a gateway subscribe; hosts subscribe to nothing.
func MaySubscribe(site string) string { return subjectRoot + "." + site + ".>" }

// parse splits a subject of the site.
func parse(site, subject string) (sender, kind, to string, ok bool) {
	p := strings.Split(subject, ".")
	if len(p) < 4 || len(p) > 5 || p[0] != subjectRoot || p[1] != site {
		return "", "", "", false
	}
	if len(p) == 5 {
		to = p[4]
	}
	return p[2], p[3], to, true
}
