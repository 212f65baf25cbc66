module @aliased {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32> {tf.aliasing_output = 1 : i32}, %arg2: tensor<2x3xf32> {tf.aliasing_output = 2 : i32}, %arg3: tensor<2x3xf32> {jax.buffer_donor = true}) -> (tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%arg3 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.negate %arg0 : tensor<2x3xf32>
    %3 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
    %4 = stablehlo.add %3, %arg2 : tensor<2x3xf32>
    return %1, %2, %4 : tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
}
