package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is a change of an operator or a number in a function.
type mutant struct {
	file, function string
	place          int // which of the function's places with this text
	from, to       string
	finder         string // the package and name of the test that found it last, if known
}

func (m mutant) String() string {
	return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s", m.file, m.function, m.place, m.from, m.to, m.finder)
}

func parseMutant(line string) (m mutant, err error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 6 {
		return m, fmt.Errorf("%q has %d fields; expected file, function, place, text, other text, the test that found it", line, len(fields))
	}
	m = mutant{file: fields[0], function: fields[1], from: fields[3], to: fields[4], finder: fields[5]}
	m.place, err = strconv.Atoi(fields[2])
	return m, err
}

// swapped are the operators and what takes their place.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR,
	token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.AND: token.OR, token.OR: token.AND, token.SHL: token.SHR,
	token.SHR: token.SHL, token.INC: token.DEC, token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
}

// place is where a mutant can be: its text from an offset of the file.
type place struct {
	mutant
	offset int
}

// places are those of a file: operators and numbers in its functions. The text of an operator is that of its expression.
func places(path string) (all []place, text []byte, err error) {
	if text, err = os.ReadFile(path); err != nil {
		return nil, nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		seen := map[string]int{}
		add := func(n ast.Node, at token.Pos, old, other string) {
			from := string(text[offset(n.Pos()):offset(n.End())])
			before := offset(at) - offset(n.Pos())
			if strings.ContainsAny(from, "\n\t") || len(from) > 120 {
				return
			}
			m := mutant{file: path, function: nameOf(f), place: seen[from], from: from, to: from[:before] + other + from[before+len(old):]}
			seen[from]++
			all = append(all, place{m, offset(n.Pos())})
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if other, ok := swapped[n.Op]; ok && !isString(n.X) && !isString(n.Y) {
					add(n, n.OpPos, n.Op.String(), other.String())
				}
			case *ast.IncDecStmt:
				if other, ok := swapped[n.Tok]; ok {
					add(n, n.TokPos, n.Tok.String(), other.String())
				}
			case *ast.AssignStmt:
				if other, ok := swapped[n.Tok]; ok && !isString(n.Rhs[0]) {
					add(n, n.TokPos, n.Tok.String(), other.String())
				}
			case *ast.IndexExpr, *ast.SliceExpr, *ast.CallExpr:
				return true
			case *ast.BasicLit:
				if v, err := strconv.ParseUint(n.Value, 0, 32); n.Kind == token.INT && err == nil {
					add(n, n.Pos(), n.Value, strconv.FormatUint(v+1, 10))
				}
			}
			return true
		})
	}
	return all, text, nil
}

func isString(e ast.Expr) bool {
	b, ok := e.(*ast.BasicLit)
	return ok && b.Kind == token.STRING
}

// nameOf is a function's name, with its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// apply is the file's text with the mutant; ok is false if the place is gone.
func (m mutant) apply() (text []byte, ok bool, err error) {
	all, text, err := places(m.file)
	if err != nil {
		return nil, false, err
	}
	at := slices.IndexFunc(all, func(p place) bool { return p.function == m.function && p.from == m.from && p.place == m.place })
	if at < 0 {
		return nil, false, nil
	}
	begin := all[at].offset
	return slices.Concat(text[:begin], []byte(m.to), text[begin+len(m.from):]), true, nil
}

// mutated are the folders whose code decides what the gateway, a diagnosis and a simulation do.
var mutated = []string{
	"cnpdec", "cnpgen", "congestion", "control/capturefile", "control/config", "control/replay", "control/report", "dataplane", "endpoint", "fleet", "flowtable", "health",
	"internal/cm", "internal/packet", "internal/transport", "lossless", "nictest", "pairing", "proxy", "ratelimit", "sim", "telemetry",
}

// draw chooses mutants: each place with the same probability, always the same for the same code.
func draw(n int) ([]mutant, error) {
	var all []mutant
	for _, dir := range mutated {
		names, err := exec.Command("git", "ls-files", dir+"/*.go").Output()
		if err != nil {
			return nil, err
		}
		for _, name := range strings.Fields(string(names)) {
			if strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.Base(name), "amd64") {
				continue
			}
			here, _, err := places(name)
			if err != nil {
				return nil, err
			}
			for _, p := range here {
				all = append(all, p.mutant)
			}
		}
	}
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	all = all[:min(n, len(all))]
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}
