//go:build live && !nodpdk && !long

package guest

var virtioMTUs = []int{1500, 9000}
