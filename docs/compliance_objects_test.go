package docs

import (
	"strings"
	"testing"
	"testing/fstest"
)

const goodPage = `# Compliance

## Summary

| Draft | met | partly | not yet | not ours | Rows |
|---|---|---|---|---|---|
| [draft-a-00](#draft-a-00) | 1 | 1 | 1 | 1 | 4 |
| [draft-b-00](#draft-b-00) | 1 | 0 | 0 | 0 | 1 |
| [draft-b-01](#draft-b-01) | 1 | 0 | 0 | 0 | 1 |
| All | 3 | 1 | 1 | 1 | 6 |

## Not met, or partly

| No | Section | Level | Requirement | Missing |
|---|---|---|---|---|
| A2 | 1.2 | MUST NOT | two | a half |
| A3 | 1.2.3 | MUST | three | all |

## draft-a-00

Rows A.

Keywords: MUST 2, MUST NOT 1; 3 in all, a row each. Plain: 1 rows.

## draft-b-00

Rows B.

Keywords: none. Plain: 1 rows.

## draft-b-01

Rows B. As -00.

Keywords: none. Plain: 1 rows.
`

const goodRows = `No,Section,Level,Requirement,Status,Where,Proof,Remark
A1,1,MUST,one,met,pkg/a.go pkg/b.go,pkg TestA/a case; pkg FuzzA,
A2,1.2,MUST NOT,two,partly,pkg/a.go,pkg TestTagged,a half
A3,1.2.3,MUST,three,not yet,,,"why, or not"
A4,4,plain,four,not ours,,,an endpoint's: speed
B1,1,plain,one,met,pkg/a.go,pkg BenchmarkA; pkg TestA/of a file.yaml; pkg TestA/golden-one,
`

var goodTree = fstest.MapFS{
	"pkg/a.go":                      {Data: []byte("package pkg\n")},
	"pkg/b.go":                      {Data: []byte("package pkg\n")},
	"pkg/a_test.go":                 {Data: []byte("func TestMain(m *testing.M) {}\nfunc TestA(t *testing.T) { _ = \"a case\" }\nfunc testB(t *testing.T) {}\n")},
	"pkg/bench_test.go":             {Data: []byte("func BenchmarkA(b *testing.B) {\n}\nfunc FuzzA(f *testing.F) {}\n")},
	"pkg/tagged_test.go":            {Data: []byte("//go:build secondopinion\n\nfunc TestTagged(t *testing.T) {\n}\n")},
	"pkg/testdata/x/of a file.yaml": {},
	"testdata/golden/golden-one/x":  {},
}

// TestComplianceObjects: each mistake on a page is noticed, and a good page has none.
func TestComplianceObjects(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", "", "", ""},
		{"no such file", "pkg/b.go,", "pkg/c.go,", "A1: no file pkg/c.go"},
		{"a folder", "pkg/b.go,", "pkg,", "A1: no file pkg that"},
		{"a test as the code", "pkg/b.go,", "pkg/a_test.go,", "A1: no file pkg/a_test.go"},
		{"no such test", "pkg FuzzA", "pkg FuzzB", "A1: no FuzzB in pkg"},
		{"half of a test's name", "pkg TestTagged", "pkg TestTag", "A2: no TestTag in pkg"},
		{"a test in another package", "pkg FuzzA", "internal FuzzA", "A1: no tests in internal"},
		{"no such case", "TestA/a case", "TestA/another case", `A1: no case "another case"`},
		{"no such golden case", "TestA/golden-one", "TestA/golden-two", `B1: no case "golden-two"`},
		{"a test without its package", "pkg FuzzA", "FuzzA", `A1: "FuzzA" isn't`},
		{"a helper", "pkg FuzzA", "pkg testB", `A1: "pkg testB" isn't`},
		{"TestMain", "pkg FuzzA", "pkg TestMain", `A1: "pkg TestMain" isn't`},
		{"words for a test", "pkg FuzzA", "see the tests", `A1: "see the tests" isn't`},
		{"no status", "four,not ours,", "four,,", `A4: "" is no status`},
		{"a status of no kind", "one,met,pkg/a.go pkg/b.go", "one,done,pkg/a.go pkg/b.go", `A1: "done" is no status`},
		{"met without a test", "pkg TestA/a case; pkg FuzzA", "", "A1: met, but names no"},
		{"met without a file", "pkg/a.go pkg/b.go", "", "A1: met, but names no"},
		{"partly, without what is missing", "pkg TestTagged,a half", "pkg TestTagged,", "A2: partly met"},
		{"not yet, without why", "\"why, or not\"", "", "A3: not yet, but"},
		{"not ours, without whose", "an endpoint's: speed", "speed", "A4: not ours, but"},
		{"met, but somebody else's", "pkg FuzzA,", "pkg FuzzA,the operator's", "A1: met, but the remark"},
		{"no section", "A3,1.2.3,", "A3,three,", `A3: "three" is no section`},
		{"no level", "A3,1.2.3,MUST,", "A3,1.2.3,must,", `A3: "must" is no level`},
		{"no requirement", "MUST,three,", "MUST,,", "A3: requires nothing"},
		{"a row twice", "A3,", "A2,", "row A3 has the number A2"},
		{"a row in another table", "A3,", "B3,", "row A3 has the number A4"},
		{"a row of no draft", "B1,", "C1,", "no draft has the rows C"},
		{"a comma in a cell", "\"why, or not\"", "why, or not", "the table can't be read"},
		{"other columns", "No,Section", "Number,Section", "the table can't be read"},
		{"what is missing isn't on the page", "| A3 | 1.2.3 | MUST | three | all |\n", "", "A3: not yet, in the table of what is missing: false"},
		{"what is met is on the page", "| A3 | 1.2.3 |", "| A1 | 1 |", "A1: met, in the table of what is missing: true"},
		{"another section on the page", "| A3 | 1.2.3 |", "| A3 | 1.2 |", "A3: the table of what is missing says"},
		{"a row of the page that isn't", "| A3 | 1.2.3 | MUST | three | all |\n", "| A3 | 1.2.3 | MUST | three | all |\n| A9 | 1 | MUST | nine | all |\n", "A9: in the table"},
		{"a sum of the summary", "| 1 | 1 | 1 | 1 | 4 |", "| 2 | 1 | 0 | 1 | 4 |", "draft-a-00: the summary says [2 1 0 1 4], the rows are [1 1 1 1 4]"},
		{"rows of the summary", "(#draft-b-00) | 1 | 0 | 0 | 0 | 1 |", "(#draft-b-00) | 1 | 0 | 0 | 0 | 2 |", "draft-b-00: the summary says"},
		{"all of the summary", "| All | 3 |", "| All | 4 |", "in all, the rows are"},
		{"a draft that isn't in the summary", "| [draft-b-00](#draft-b-00) | 1 | 0 | 0 | 0 | 1 |\n", "", "draft-b-00: the summary says []"},
		{"a link elsewhere", "(#draft-b-00)", "(#draft-c-00)", "draft-b-00: the summary says []"},
		{"a draft without a section", "## draft-b-00", "## Draft b", "the summary has 4 lines for 2 drafts"},
		{"a draft without rows", "Rows A.", "", "draft-a-00: the summary says [1 1 1 1 4], the rows are [0 0 0 0 0]"},
		{"keywords by level", "MUST 2, MUST NOT 1;", "MUST 1, MUST NOT 2;", "draft-a-00: keywords are said to be"},
		{"keywords in all", "3 in all", "4 in all", "draft-a-00: keywords are said to be"},
		{"plain rows", "Rows B.\n\nKeywords: none. Plain: 1 rows.", "Rows B.\n\nKeywords: none. Plain: 2 rows.", "draft-b-00: keywords are said to be"},
		{"keywords not told", "Rows B.\n\nKeywords: none", "Rows B.\n\nKeywords: few", `draft-b-00: "Keywords: few`},
		{"another level", "A1,1,MUST,", "A1,1,SHOULD,", "draft-a-00: keywords are said to be"},
		{"another status", "two,partly,", "two,met,", "draft-a-00: the summary says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n := strings.Count(goodPage, c.from) + strings.Count(goodRows, c.from); c.from != "" && n != 1 {
				t.Fatalf("%q is %d times on the page and in the rows", c.from, n)
			}
			page := parse(strings.Replace(goodPage, c.from, c.to, 1), strings.Replace(goodRows, c.from, c.to, 1))
			page.check(goodTree)
			got := strings.Join(page.mistakes, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("mistakes:\n%s\nexpected %q", got, c.want)
			}
		})
	}
}
