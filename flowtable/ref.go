package flowtable

// Ref names a flow for as long as it lives: another flow that gets its index has another generation. The zero Ref names none.
type Ref struct {
	Index      Index
	Generation uint32
}

// Ref names the flow that has an index now; the zero Ref for None.
func (t *Table) Ref(x Index) Ref { return Ref{x, t.State(x).Generation()} }

// Live reports whether the flow that r names has not ended.
func (t *Table) Live(r Ref) bool {
	s := t.State(r.Index)
	return s.Live() && s.Generation() == r.Generation
}
