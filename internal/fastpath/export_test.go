package fastpath

// The specifications of the functions in assembly.
var (
	ParsePlainGo = parsePlainGo
	MarkBurstGo  = markBurstGo
	StoreSetGo   = storeSetGo
)
