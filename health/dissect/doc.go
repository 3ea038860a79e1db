// Package dissect finds the RoCEv2 packet in a captured frame, for a diagnosis. It reads what a person's tools read and a gateway need not: the headers that
// mirrors put in front of a frame (ERSPAN, Everflow), overlays on other ports (VXLAN on 8472, VXLAN-GPE, Geneve), more VLAN tags than two, and frames
// that the capture has cut short. Of a frame that can't be read it says why, so that each frame of a capture is accounted for.
//
// Frames are parsed by internal/packet; this package only takes away what is in front. It allocates nothing for a frame, but for the first of each reason.
package dissect
