//! Names of special registers.

use crate::code::Special;

/// The special register of that name.
pub(crate) fn lookup(name: &str, component: Option<u16>) -> Option<Special> {
    let name = name.strip_prefix('%')?;
    // The parser splits off components; names with dots inside of them are taken too.
    let (name, component) = match (component, name.rsplit_once('.')) {
        (Some(component), _) => (name, u8::try_from(component).ok()?),
        (None, Some((name, "x"))) => (name, 0),
        (None, Some((name, "y"))) => (name, 1),
        (None, Some((name, "z"))) => (name, 2),
        (None, Some((name, "w"))) => (name, 3),
        _ => (name, 0),
    };
    Some(match name {
        "tid" => Special::Tid(component),
        "ntid" => Special::Ntid(component),
        "ctaid" => Special::Ctaid(component),
        "nctaid" => Special::Nctaid(component),
        "laneid" => Special::LaneId,
        "warpid" => Special::WarpId,
        "nwarpid" => Special::NwarpId,
        "smid" => Special::SmId,
        "nsmid" => Special::NsmId,
        "gridid" => Special::GridId,
        "lanemask_eq" => Special::LaneMaskEq,
        "lanemask_le" => Special::LaneMaskLe,
        "lanemask_lt" => Special::LaneMaskLt,
        "lanemask_ge" => Special::LaneMaskGe,
        "lanemask_gt" => Special::LaneMaskGt,
        "clock" => Special::Clock,
        "clock_hi" => Special::ClockHi,
        "clock64" => Special::Clock64,
        "globaltimer" => Special::GlobalTimer,
        "globaltimer_lo" => Special::GlobalTimerLo,
        "globaltimer_hi" => Special::GlobalTimerHi,
        "total_smem_size" => Special::TotalShared,
        "aggr_smem_size" => Special::AggregateShared,
        "dynamic_smem_size" => Special::DynamicShared,
        "reserved_smem_offset_begin" => Special::ReservedShared(0),
        "reserved_smem_offset_end" => Special::ReservedShared(1),
        "reserved_smem_offset_cap" => Special::ReservedShared(2),
        "reserved_smem_offset_0" => Special::ReservedShared(3),
        "reserved_smem_offset_1" => Special::ReservedShared(4),
        "clusterid" => Special::ClusterId(component),
        "nclusterid" => Special::NclusterId(component),
        "cluster_ctaid" => Special::ClusterCtaid(component),
        "cluster_nctaid" => Special::ClusterNctaid(component),
        "cluster_ctarank" => Special::ClusterCtarank,
        "cluster_nctarank" => Special::ClusterNctarank,
        "is_explicit_cluster" => Special::IsExplicitCluster,
        "current_graph_exec" => Special::Nothing,
        "pm0" | "pm1" | "pm2" | "pm3" | "pm4" | "pm5" | "pm6" | "pm7" | "pm0_64" | "pm1_64"
        | "pm2_64" | "pm3_64" | "pm4_64" | "pm5_64" | "pm6_64" | "pm7_64" => Special::Nothing,
        _ => Special::Env(name.strip_prefix("envreg")?.parse().ok()?),
    })
}
