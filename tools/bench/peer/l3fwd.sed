# What scripts/bench changes in DPDK's example l3fwd so that it runs in slices on net_pcap. The compiler gets BURST, the frames of a burst.
# net_pcap verifies no checksum, so that l3fwd asks for no such offload.
s/\.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM,/.offloads = 0,/
# The loop is run by peer/l3fwd.c, in slices of CPU time.
s/rte_eal_mp_remote_launch(l3fwd_lkp\.main_loop, NULL, CALL_MAIN);/{ extern void serve_slices(int (*)(void *)); serve_slices(l3fwd_lkp.main_loop); }/
# Both sides have the same burst, and tables for 1 Mi flows.
s/^#define MAX_PKT_BURST .*/#define MAX_PKT_BURST BURST/
s/1024\*1024\*4/1024*1024/
