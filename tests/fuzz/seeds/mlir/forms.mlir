#loc = loc(unknown)
!t = tensor<4x4xf32>
module @net attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  util.global private @g {noinline} = dense<1.0> : tensor<4x4xf32>
  func.func public @main(%arg0: !t {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"y", ?}]>}, %arg1: tensor<?x4xf32> loc("params['w']")) -> (tensor<?x4xf32> {jax.result_info = ""}) {
    %0 = "stablehlo.dot_general"(%arg1, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x4xf32>, !t) -> tensor<?x4xf32> loc(#loc)
    %1:2 = func.call @g(%0) : (tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>)
    %2 = util.global.load @g : tensor<4x4xf32>
    %3 = stablehlo.dot_general %1#0, %2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{}, {"x"}]> : tensor<?x4xf32>
    return %4 : tensor<?x4xf32>
  }
  func.func private @g(%arg0: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>) {
    %c = stablehlo.constant dense<"0x0000803F"> : tensor<f32>
    return %arg0, %c : tensor<?x4xf32>, tensor<f32>
  }
}
