package flowtable

// High is the highest index that has ever named a flow: whoever goes over the table in pieces is done there.
func (t *Table) High() Index { return Index(t.high) }

// InUse tells whether an index, from 1 to High, names a flow now.
func (t *Table) InUse(i Index) bool { return state(t.entries[i].state.Load()).live() }
