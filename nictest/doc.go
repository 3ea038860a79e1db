// Package nictest measures how a sender's NIC reacts to congestion notifications. A Session sends notifications to a sender according to a plan,
// records the sender's rate over time, and says what each one did: the time to the first reduction, the depth of the cut, the recovery. From the
// curves it fits a Profile, the file of a NIC for the simulator, and suggests a configuration.
//
// The package is pure: time (int64 nanoseconds), packets and buffers come from the caller. `cnpgate nictest` runs a Session on a device; Simulate runs
// one in virtual time against package endpoint's reaction point.
//
//	s.Data(now, length)          // a data packet of the sender arrived
//	n := s.Next(now, out)        // a notification to send, or 0
//	at, more := s.Due()          // when to call Next again if no packet arrives
//	r := s.Result()              // at any time
package nictest
