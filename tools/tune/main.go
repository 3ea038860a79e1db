// Command tune lets a build of cnpgate run with other constants of the control law, to measure what each is worth. It changes no source: it writes
// copies of the files in which constants are used, for go build -overlay. In that build, CNPGATE_TUNE="NAME=VALUE" replaces a constant.
//
//	go run ./tools/tune DIR ./congestion ./dataplane/respond
//
// writes DIR/overlay.json and prints a line for each constant whose name begins with law: its name, its value, half of it and its double.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "tune: expected the folder to write to, and then folders of packages")
		os.Exit(2)
	}
	if err := tune(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "tune:", err)
		os.Exit(1)
	}
}

// tune writes the overlay of some packages to a folder, and prints their constants.
func tune(to string, packages []string) error {
	overlay := map[string]string{}
	for n, dir := range packages {
		files, constants, err := rewrite(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		for path, text := range files {
			copied := filepath.Join(to, strconv.Itoa(n)+"-"+filepath.Base(path))
			if err := os.WriteFile(copied, text, 0o600); err != nil {
				return err
			}
			overlay[path] = copied
		}
		for _, c := range constants {
			low, high := c.around()
			fmt.Println(c.name, show(c.value), show(low), show(high))
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "overlay.json"), text, 0o600)
}

func show(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// tunable is a constant.
type tunable struct {
	name  string
	value float64
}

// around is what a constant is compared with: half and double, or for a factor near 1 its square root and square.
func (t tunable) around() (low, high float64) {
	if t.value >= 0.5 && t.value < 1.5 {
		low, high = math.Sqrt(t.value), t.value*t.value
		return min(low, high), max(low, high)
	}
	return t.value / 2, t.value * 2
}

// rewrite returns the changed files of a package by their absolute paths, with one more that reads the environment, and the constants.
func rewrite(dir string) (files map[string][]byte, constants []tunable, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	p, err := load(dir)
	if err != nil {
		return nil, nil, err
	}
	files = map[string][]byte{}
	used := map[string]tunable{}
	for _, f := range p.files {
		changes := p.changes(f, used)
		if len(changes) == 0 {
			continue
		}
		path := p.set.Position(f.Pos()).Filename
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range changes {
			text = slices.Concat(text[:c.at], []byte(c.text), text[c.at+len(c.name):])
		}
		files[path] = text
	}
	for _, c := range used {
		constants = append(constants, c)
	}
	slices.SortFunc(constants, func(a, b tunable) int { return cmp.Compare(a.name, b.name) })
	if len(constants) == 0 {
		return nil, nil, fmt.Errorf("no constant whose name begins with %s is used; expected some", prefix)
	}
	files[filepath.Join(dir, "tuned.go")] = variables(p.files[0].Name.Name, constants)
	return files, constants, nil
}

const prefix = "law"

// variables is the file with the constants as variables.
func variables(of string, constants []tunable) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `package %s

import (
	"os"
	"strconv"
	"strings"
)

func tuned(name string, value float64) float64 {
	if n, v, _ := strings.Cut(os.Getenv("CNPGATE_TUNE"), "="); n == name {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			panic(err)
		}
		return f
	}
	return value
}

`, of)
	for _, c := range constants {
		fmt.Fprintf(&b, "var tuned_%s = tuned(%q, %s)\n", c.name, c.name, c.name)
	}
	return b.Bytes()
}

// change replaces a name at a place of a file.
type change struct {
	at         int
	name, text string
}

// changes are the uses of tunable constants in a file, the last one first. Constants and the lengths of arrays stay as they are.
func (p *source) changes(f *ast.File, used map[string]tunable) (all []change) {
	var above []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			return false
		}
		if a, ok := n.(*ast.ArrayType); ok && a.Len != nil {
			return false
		}
		if name, ok := n.(*ast.Ident); ok && p.tunable(name) {
			value, _ := constant.Float64Val(constant.ToFloat(p.info.Uses[name].(*types.Const).Val()))
			used[name.Name] = tunable{name.Name, value}
			text := fmt.Sprintf("%s(tuned_%s)", p.typeOf(name, above), name.Name)
			all = append(all, change{p.set.Position(name.Pos()).Offset, name.Name, text})
		}
		above = append(above, n)
		return true
	})
	slices.SortFunc(all, func(a, b change) int { return b.at - a.at })
	return all
}

// tunable reports whether a name is a constant of the package that can be replaced.
func (p *source) tunable(name *ast.Ident) bool {
	c, ok := p.info.Uses[name].(*types.Const)
	return ok && strings.HasPrefix(name.Name, prefix) && c.Parent() == c.Pkg().Scope()
}

// typeOf is the type of a constant where it is used: that of the largest constant expression that it is part of.
func (p *source) typeOf(name *ast.Ident, above []ast.Node) types.Type {
	as := p.info.Types[name].Type
	for i := len(above) - 1; i >= 0; i-- {
		e, ok := above[i].(ast.Expr)
		if t := p.info.Types[e]; !ok || t.Value == nil || as.Underlying().(*types.Basic).Info()&types.IsUntyped == 0 {
			break
		}
		as = p.info.Types[e].Type
	}
	return types.Default(as)
}

// source is a package with its types.
type source struct {
	set   *token.FileSet
	files []*ast.File
	info  types.Info
}

// load reads a package. Imports that can't be resolved don't matter: constants' types don't depend on them.
func load(dir string) (*source, error) {
	p := &source{set: token.NewFileSet(), info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	config := types.Config{Importer: importer.ForCompiler(p.set, "source", nil), Error: func(error) {}}
	_, _ = config.Check(dir, p.set, p.files, &p.info)
	return p, nil
}
